import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import type { runJobs as RunJobs } from "../../src/cli/commands/run/thread-pool.ts";
import { REPOSITORY } from "../support/run-program.ts";

/** Threads load built files, so the pool that is tested is the built one. */
const BUILT = pathToFileURL(join(REPOSITORY, "dist", "cli", "commands", "run")).href;
const { runJobs } = (await import(`${BUILT}/thread-pool.js`)) as { runJobs: typeof RunJobs };

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "warmpath-threads-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
});

/** Runs ten jobs in two threads, of which the seventh does this; the answer of each other is its number. */
async function run(seventh: string, before = ""): Promise<{ finished: number[]; error: unknown }> {
  const path = join(folder, "thread.mjs");
  writeFileSync(
    path,
    `import { serveJobs } from "${BUILT}/serve-jobs.js";
     import { WarmpathError } from "${new URL("../../../core/errors.js", `${BUILT}/`).href}";
     ${before}
     serveJobs(async (index) => {
       if (index === 6) { ${seventh} }
       return index;
     });`,
  );
  const finished: number[] = [];
  const work = { thread: pathToFileURL(path), setting: {}, jobs: 10, run: () => -1 };
  const watch = { signal: new AbortController().signal, finished: (answer: number) => void finished.push(answer) };
  const error: unknown = await runJobs(work, 2, watch).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  return { finished, error };
}

describe("a pool of threads", () => {
  test("has every job done once", async () => {
    const { finished, error } = await run("");
    expect(error).toBeUndefined();
    expect(finished.toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });

  test.each([
    ["what was asked cannot be", `throw new WarmpathError("WP_INVALID_INPUT", "no such thing")`, "WP_INVALID_INPUT"],
    ["a mistake of ours", `throw new WarmpathError("WP_INVALID_STATE", "odd")`, "WP_INVALID_STATE"],
    ["the disk", `throw Object.assign(new Error("full"), { code: "ENOSPC", syscall: "write" })`, "ENOSPC"],
  ])("fails as its job does: %s", async (_, seventh, code) => {
    const { error, finished } = await run(seventh);
    expect(error).toMatchObject({ code });
    expect(finished).not.toContain(6);
  });

  test("fails where a thread ends without an answer, instead of leaving its job out", async () => {
    const { error } = await run("process.exit(0)");
    expect(error).toMatchObject({ code: "WP_INVALID_STATE", message: "a thread has ended: exit code 0" });
  });

  test("fails where a thread throws outside its job, also while its last answer is taken in", async () => {
    const { error } = await run(`setTimeout(() => { throw new Error("stray") }, 0); await new Promise(() => {})`);
    expect(error).toMatchObject({ code: "WP_INVALID_STATE", message: "a thread has ended: stray" });
  });

  test("fails where the code of a thread cannot be loaded", async () => {
    const { error, finished } = await run("", `import "./no-such-file.mjs";`);
    expect(error).toMatchObject({ code: "WP_INVALID_STATE" });
    expect((error as Error).message).toContain("no-such-file.mjs");
    expect(finished).toEqual([]);
  });
});
