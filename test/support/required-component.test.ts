import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { dataFolder, requireData, requireProgram, type SkippableTest } from "./required-component.ts";

class Skipped extends Error {}

const skippable: SkippableTest = {
  skip(note) {
    throw new Skipped(note);
  },
};

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "warmpath-required-"));
  mkdirSync(join(folder, "bin"));
  writeFileSync(join(folder, "trace.jsonl"), "");
  writeFileSync(join(folder, "bin", "engine"), "");
  chmodSync(join(folder, "bin", "engine"), 0o755);
});

afterEach(() => rmSync(folder, { recursive: true }));

describe("a test that needs a component", () => {
  test("gets its path where it is there", () => {
    expect(requireData(skippable, "trace.jsonl", { WARMPATH_DATA: folder })).toBe(join(folder, "trace.jsonl"));
    const PATH = join(folder, "bin");
    expect(requireProgram(skippable, ["other", "engine"], { PATH })).toBe(join(PATH, "engine"));
  });

  test("is skipped with a message that says what is missing", () => {
    const environment = { WARMPATH_DATA: folder, PATH: folder };
    expect(() => requireData(skippable, "other.jsonl", environment)).toThrow(Skipped);
    expect(() => requireData(skippable, "other.jsonl", environment)).toThrow(/needs the data file other\.jsonl/);
    expect(() => requireProgram(skippable, ["nats-server"], environment)).toThrow(Skipped);
    expect(() => requireProgram(skippable, ["nats-server"], environment)).toThrow(/needs the program nats-server/);
  });

  test("fails instead where all components are required", () => {
    const environment = { WARMPATH_DATA: folder, PATH: folder, WARMPATH_REQUIRE_ALL: "1" };
    expect(() => requireData(skippable, "other.jsonl", environment)).not.toThrow(Skipped);
    expect(() => requireData(skippable, "other.jsonl", environment)).toThrow(/WARMPATH_REQUIRE_ALL=1/);
    expect(() => requireProgram(skippable, ["nats-server"], environment)).toThrow(/WARMPATH_REQUIRE_ALL=1/);
  });

  test("looks for data in the repository unless told otherwise", () => {
    expect(dataFolder({})).toBe(join(process.cwd(), "data"));
    expect(dataFolder({ WARMPATH_DATA: "" })).toBe(join(process.cwd(), "data"));
  });
});
