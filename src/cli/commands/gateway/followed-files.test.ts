import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { followFiles } from "./followed-files.ts";

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "warmpath-followed-"));
});

afterEach(() => rm(folder, { recursive: true, force: true }));

test("files are read again when one of them changes; a change that cannot be used is told and not taken", async () => {
  const [one, two] = ["one", "two"].map((name) => join(folder, name));
  await Promise.all([writeFile(one, "1"), writeFile(two, "2")]);
  const values: string[] = [];
  const lines: string[] = [];
  const followed = await followFiles({
    files: { "first-file": one, "second-file": two },
    read: (...texts) => {
      if (texts.includes("bad")) throw new Error("bad text");
      return texts.join("+");
    },
    changed: (value) => values.push(value),
    log: (line) => lines.push(line),
  });
  expect(followed.first).toBe("1+2");
  await writeFile(two, "bad");
  await vi.waitFor(() => expect(lines).toEqual(["bad text; what was read before stays in force"]), 10_000);
  expect(values).toEqual([]);
  await writeFile(two, "3");
  await vi.waitFor(() => expect(values).toEqual(["1+3"]), 10_000);
  expect(lines[1]).toBe(`--first-file ${one} and --second-file ${two}: read again`);
  followed.close();
});

test("a file that is not there is the user's to name", async () => {
  const options = { files: { "a-file": join(folder, "none") }, read: String, changed: () => {}, log: () => {} };
  await expect(followFiles(options)).rejects.toThrow(/--a-file .*none does not exist/);
});
