import { join } from "node:path";
import { expect, test } from "vitest";
import { REPOSITORY, runProgram } from "../support/run-program.ts";

test("the reference of policies has every policy and knob as the registry has them", async () => {
  const script = join(REPOSITORY, "scripts", "policies-page.mjs");
  const { status, stderr } = await runProgram(process.execPath, ["--import", "tsx", script, "--check"]);
  expect(stderr).toBe("");
  expect(status).toBe(0);
});
