import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { REPOSITORY } from "../support/run-program.ts";

const PAGE = join(REPOSITORY, "dist", "web");
const MOST_BYTES = 150_000;

function files(): { readonly name: string; readonly content: Buffer }[] {
  return readdirSync(PAGE, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => ({ name: entry.name, content: readFileSync(join(entry.parentPath, entry.name)) }));
}

describe("the built page", () => {
  test("is one script, one style and less than 150 kB gzipped", () => {
    const names = files().map(({ name }) => name);
    expect(names.filter((name) => name.endsWith(".js"))).toHaveLength(1);
    expect(names.filter((name) => name.endsWith(".css"))).toHaveLength(1);
    const bytes = files().reduce((sum, { content }) => sum + gzipSync(content).length, 0);
    expect(bytes).toBeLessThan(MOST_BYTES);
  });

  test("asks nobody else for anything", () => {
    for (const { name, content } of files().filter((file) => /\.(html|css)$/.test(file.name))) {
      expect(content.toString(), `${name} asks for something elsewhere`).not.toMatch(
        /(?:src|href|url\()\s*=?\s*["']?(?:https?:)?\/\//,
      );
    }
  });
});
