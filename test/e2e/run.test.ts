import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { once } from "node:events";
import { watch } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readRecords } from "../../src/lab/results/records-file.ts";
import { readResults } from "../../src/lab/results/store.ts";
import { REPOSITORY, runWarmpath } from "../support/run-program.ts";

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "warmpath-run-"));
});

afterEach(() => rmSync(folder, { recursive: true }));

describe("warmpath run", () => {
  test("gives the same bytes from one thread and from several", async () => {
    const words = ["run", "h200-sweep", "--levels", "60", "--runs", "2", "--out"];
    const outs = ["1", "3"].map((threads) => join(folder, threads));
    for (const [at, out] of outs.entries()) {
      const { status, stderr } = await runWarmpath([...words, out, "--threads", ["1", "3"][at]]);
      expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    }
    for (const name of ["results.json", "records.jsonl.gz"]) {
      const [one, several] = outs.map((out) => readFileSync(join(out, name)));
      expect(several.equals(one)).toBe(true);
    }
  });

  test("leaves its finished cells on disk when it is interrupted", async () => {
    const out = join(folder, "cut");
    mkdirSync(out);
    const files = watch(out);
    const main = join(REPOSITORY, "dist", "cli", "main.js");
    const child = spawn(process.execPath, [main, "run", "h200-sweep", "--out", out, "--threads", "2"], {
      stdio: "pipe",
    });
    const ended = once(child, "close");
    child.stdout.resume();
    // The first results are written as soon as there is a cell.
    for await (const { filename } of files) if (filename === "results.json") break;
    child.kill("SIGINT");
    const [, signal] = (await ended) as [number | null, string | null];
    expect(signal).toBe("SIGINT");
    const { content, problems } = await readResults(out);
    expect(problems).toEqual([]);
    const finished = new Set(content?.cells.map(({ id }) => id));
    expect(finished.size).toBeGreaterThan(0);
    expect(finished.size).toBeLessThan(84);
    const recorded = new Set<string>();
    for await (const { cell } of readRecords(join(out, "records.jsonl.gz"))) recorded.add(cell);
    expect(recorded).toEqual(finished);
    expect(existsSync(join(out, ".records"))).toBe(false);
  });
});
