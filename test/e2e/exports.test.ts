import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { REPOSITORY, runProgram } from "../support/run-program.ts";

interface Manifest {
  readonly name: string;
  readonly exports: Readonly<Record<string, string | { readonly types: string; readonly default: string }>>;
}

const manifest = JSON.parse(readFileSync(join(REPOSITORY, "package.json"), "utf8")) as Manifest;
const modules = Object.keys(manifest.exports).filter((subpath) => subpath !== "./package.json");

/** Imports a subpath by the package's own name, as a user of the built package does, and returns the exported names. */
async function exportedNames(subpath: string): Promise<string[]> {
  const specifier = manifest.name + subpath.slice(1);
  const program = `console.log(JSON.stringify(Object.keys(await import(${JSON.stringify(specifier)}))))`;
  const { status, stdout, stderr } = await runProgram(process.execPath, ["--input-type=module", "--eval", program]);
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  return (JSON.parse(stdout) as string[]).sort();
}

describe("the published package", () => {
  test.each(modules)("%s resolves, has types, and exports names only", async (subpath) => {
    const names = await exportedNames(subpath);
    expect(names.length).toBeGreaterThan(0);
    expect(names).not.toContain("default");
    const target = manifest.exports[subpath];
    expect(typeof target === "object" && readFileSync(join(REPOSITORY, target.types), "utf8")).toBeTruthy();
  });

  test("warmpath/core exports these names and no others", async () => {
    expect(await exportedNames("./core")).toMatchSnapshot();
  });

  test("what is not exported cannot be reached", async () => {
    const program = 'await import("warmpath/core/rng.js")';
    const { stderr } = await runProgram(process.execPath, ["--input-type=module", "--eval", program]);
    expect(stderr).toContain("ERR_PACKAGE_PATH_NOT_EXPORTED");
  });
});
