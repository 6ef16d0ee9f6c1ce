/** What the load generator takes for granted of the articles that ship with it. */
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ByteBpe, readTokenizerJson } from "../../src/tokenizer/index.ts";
import { qwenFile } from "../support/model-files.ts";
import { REPOSITORY } from "../support/run-program.ts";

const FOLDER = join(REPOSITORY, "presets", "starters");

const articles = readdirSync(FOLDER)
  .filter((name) => name !== "README.md")
  .map((name) => ({ name, text: readFileSync(join(FOLDER, name), "utf8") }));

/** The titles among them; white space does not make two paragraphs differ. */
const paragraphsOf = (text: string): string[] =>
  text
    .trim()
    .split(/\n\s*\n/)
    .map((paragraph) => paragraph.replaceAll(/\s+/g, " ").trim());

const repeated = (values: readonly string[]): string[] =>
  values.filter((value, index) => values.indexOf(value) !== index);

test("there are ten articles, in markdown", () => {
  expect(articles).toHaveLength(10);
  for (const { name } of articles) expect(name).toMatch(/^[a-z]+(-[a-z]+)*\.md$/);
});

test("each article has 3,500 to 4,000 tokens under a real vocabulary", () => {
  const bpe = new ByteBpe(readTokenizerJson(JSON.parse(readFileSync(qwenFile("tokenizer.json"), "utf8"))));
  const outside = articles
    .map(({ name, text }) => ({ name, tokens: bpe.encode(text).length }))
    .filter(({ tokens }) => tokens < 3500 || tokens > 4000);
  expect(outside).toEqual([]);
});

test("each article begins with a title of its own", () => {
  const titles = articles.map(({ text }) => text.slice(0, text.indexOf("\n")));
  for (const title of titles) expect(title).toMatch(/^# \S/);
  expect(repeated(titles)).toEqual([]);
});

test("no paragraph stands twice, in one article or in two", () => {
  expect(repeated(articles.flatMap(({ text }) => paragraphsOf(text)))).toEqual([]);
});
