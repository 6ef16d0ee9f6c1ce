import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { REPOSITORY, runProgram } from "../support/run-program.ts";

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "warmpath-audit-"));
});

afterEach(() => rm(folder, { recursive: true, force: true }));

/** Runs the audit with an npm that prints what it is told. */
async function auditWith(answer: string, status: number): Promise<{ status: number | null; stdout: string }> {
  await writeFile(join(folder, "answer.json"), answer);
  await writeFile(join(folder, "npm"), `#!/bin/sh\ncat ${join(folder, "answer.json")}\nexit ${status}\n`);
  await chmod(join(folder, "npm"), 0o755);
  const environment = { PATH: `${folder}${delimiter}${process.env["PATH"]}` };
  return await runProgram(process.execPath, [join(REPOSITORY, "scripts", "audit.mjs")], { environment });
}

const found = (severity: string): string =>
  JSON.stringify({
    vulnerabilities: { leaky: { name: "leaky", severity, range: "<2.0.0" } },
    metadata: { vulnerabilities: { info: 0, low: 0, moderate: 0, high: 0, critical: 0, [severity]: 1, total: 1 } },
  });

test.each([
  ["high", 1],
  ["critical", 1],
  ["moderate", 0],
])("a vulnerability that is %s ends with %i and is named", async (severity, status) => {
  expect(await auditWith(found(severity), 1)).toMatchObject({
    status,
    stdout: `${severity}: leaky <2.0.0; see npm audit\n`,
  });
});

test.each([
  ['{"message":"request to registry failed","error":{"summary":"","detail":""}}', "request to registry failed"],
  [
    '{"error":{"code":"ENOAUDIT","summary":"this registry has no audit endpoint"}}',
    "this registry has no audit endpoint",
  ],
  ["", "no answer that can be read"],
])("a registry that cannot be asked is skipped, and said to be", async (answer, reason) => {
  expect(await auditWith(answer, 1)).toMatchObject({
    status: 0,
    stdout: `skipped: the registry could not be asked: ${reason}\n`,
  });
});
