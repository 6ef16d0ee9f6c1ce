import pc from "picocolors";
import { describe, expect, test } from "vitest";
import { WarmpathError } from "../core/errors.ts";
import { runCli } from "./program.ts";

async function runWithBrokenStdin(error: Error, debug: boolean): Promise<{ exitCode: number; complaints: string[] }> {
  const complaints: string[] = [];
  const exitCode = await runCli(["explain", "-"], {
    colours: pc.createColors(false),
    debug,
    print: () => {},
    printError: (line) => complaints.push(line),
    readStdin: async () => {
      throw error;
    },
  });
  return { exitCode, complaints };
}

describe("an error that is not the user's", () => {
  test("is one line with its code, and exit code 1", async () => {
    const error = new WarmpathError("WP_INVALID_STATE", "the index\n  is torn");
    const { exitCode, complaints } = await runWithBrokenStdin(error, false);
    expect(exitCode).toBe(1);
    expect(complaints).toEqual([
      "warmpath explain: internal error [WP_INVALID_STATE] the index is torn (WARMPATH_DEBUG=1 shows where)",
    ]);
  });

  test("is called unexpected where it has no code, and shows its stack when debugging", async () => {
    const { exitCode, complaints } = await runWithBrokenStdin(new Error("disk on fire"), true);
    expect(exitCode).toBe(1);
    expect(complaints[0]).toMatch(/^Error: disk on fire\n\s+at /);
    expect(complaints[1]).toContain("[unexpected] disk on fire");
  });
});
