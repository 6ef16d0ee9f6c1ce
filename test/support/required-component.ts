import { accessSync, constants, existsSync } from "node:fs";
import { delimiter, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

/** The part of vitest's test context that is used here. */
export interface SkippableTest {
  skip(note: string): never;
}

export type Environment = Readonly<Record<string, string | undefined>>;

const REPOSITORY = fileURLToPath(new URL("../..", import.meta.url));

/** The folder with real traces and measurements. */
export function dataFolder(environment: Environment = process.env): string {
  return resolve(REPOSITORY, environment["WARMPATH_DATA"] || "data");
}

/** The path of a data file that the test needs; without it the test is skipped. */
export function requireData(test: SkippableTest, name: string, environment: Environment = process.env): string {
  const path = join(dataFolder(environment), name);
  if (!existsSync(path)) {
    missing(test, `the data file ${name}, which is not in ${dataFolder(environment)}; set WARMPATH_DATA`, environment);
  }
  return path;
}

/** The path of a program that the test needs, by the first of its names that is on the PATH; else the test is skipped. */
export function requireProgram(
  test: SkippableTest,
  names: readonly [string, ...string[]],
  environment: Environment = process.env,
): string {
  const folders = (environment["PATH"] ?? "").split(delimiter).filter((folder) => folder !== "");
  const path = names.flatMap((name) => folders.map((folder) => join(folder, name))).find(isExecutable);
  return path ?? missing(test, `the program ${names.join(" or ")}, which is not on the PATH`, environment);
}

/** Skips what cannot run here, loudly; where everything must run, as in CI, a missing component is a failure. */
function missing(test: SkippableTest, what: string, environment: Environment): never {
  if (environment["WARMPATH_REQUIRE_ALL"] === "1")
    throw new Error(`WARMPATH_REQUIRE_ALL=1, and this test needs ${what}`);
  return test.skip(`needs ${what}`);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
