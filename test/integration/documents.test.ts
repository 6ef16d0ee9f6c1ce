import { existsSync, readFileSync, statSync } from "node:fs";
import { posix } from "node:path";
import { expect, test } from "vitest";
import { anchors, localLinks, markdownFiles } from "../support/markdown-page.ts";
import { REPOSITORY } from "../support/run-program.ts";

const PAGES: ReadonlyMap<string, string> = new Map(
  markdownFiles(REPOSITORY).map((path) => [path, readFileSync(`${REPOSITORY}/${path}`, "utf8")]),
);

/** The path that a link of a page leads to, relative to the repository, and the anchor on it. */
function destination(page: string, target: string): { path: string; anchor: string | undefined } {
  const [written, anchor] = target.split("#");
  const path = written === "" ? page : posix.normalize(posix.join(posix.dirname(page), decodeURI(written)));
  return { path, anchor };
}

/** What is wrong with a link, if anything. */
function problem(page: string, target: string): string | undefined {
  const { path, anchor } = destination(page, target);
  const absolute = `${REPOSITORY}/${path}`;
  if (path.startsWith("..")) return "leads out of the repository";
  if (!existsSync(absolute)) return "leads to nothing";
  if (anchor === undefined) return undefined;
  if (statSync(absolute).isDirectory()) return "has an anchor on a folder";
  const text = PAGES.get(path);
  if (text === undefined) return undefined;
  return anchors(text).has(anchor) ? undefined : "leads to no heading of that page";
}

test("every link of every document leads to a file, and to a heading where it names one", () => {
  const broken = [...PAGES].flatMap(([page, text]) =>
    localLinks(text).flatMap(({ target, line }) => {
      const wrong = problem(page, target);
      return wrong === undefined ? [] : [`${page}:${line}: ${target} ${wrong}`];
    }),
  );
  expect(PAGES.size).toBeGreaterThan(50);
  expect(broken).toEqual([]);
});

test("every page below docs/ is reached from the README by links alone", () => {
  const reached = new Set(["README.md"]);
  for (const page of reached) {
    for (const { target } of localLinks(PAGES.get(page) ?? "")) {
      const { path } = destination(page, target);
      if (PAGES.has(path)) reached.add(path);
    }
  }
  const pages = [...PAGES.keys()].filter((path) => path.startsWith("docs/"));
  expect(pages.filter((path) => !reached.has(path))).toEqual([]);
});

/** Files and folders that the first column of a README's tables names: names with an ending, or with a slash at their end. */
function mappedNames(text: string): string[] {
  const cells = text.split("\n").flatMap((line) => /^\|([^|]+)\|/.exec(line)?.[1] ?? []);
  return cells.flatMap((cell) => [...cell.matchAll(/`([\w./-]+(?:\.(?:ts|tsx|mjs)|\/))`/g)].map(([, name]) => name));
}

test("every file that a README maps is beside it", () => {
  const readmes = [...PAGES].filter(([page]) => /^(src|web|test|benchmarks|scripts)\/.*README\.md$/.test(page));
  const absent = readmes.flatMap(([page, text]) =>
    mappedNames(text)
      .filter((name) => !existsSync(posix.join(REPOSITORY, posix.dirname(page), name)))
      .map((name) => `${page}: ${name}`),
  );
  expect(readmes.length).toBeGreaterThan(20);
  expect(absent).toEqual([]);
});
