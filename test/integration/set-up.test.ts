import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { fileTree } from "../support/file-tree.ts";
import { type ProgramResult, runProgram } from "../support/run-program.ts";

const SCRIPTS = ["scripts/set-up.mjs", "scripts/set-up/install.mjs", "scripts/set-up/build.mjs"];

/** Stands in for npm: notes how it was called and pretends to have installed what the lockfile asks for. */
const FAKE_NPM = `const fs = require("node:fs");
fs.appendFileSync("npm-calls", process.argv.slice(2).join(" ") + "\\n");
fs.mkdirSync("node_modules/typescript/bin", { recursive: true });
fs.copyFileSync("package-lock.json", "node_modules/.package-lock.json");
fs.copyFileSync("fake-tsc.js", "node_modules/typescript/bin/tsc");
`;

const FAKE_COMPILER = `const fs = require("node:fs");
fs.appendFileSync("compiler-calls", "called\\n");
fs.mkdirSync("dist/cli", { recursive: true });
for (const name of fs.readdirSync("src/cli")) fs.writeFileSync("dist/cli/" + name.replace(/ts$/, "js"), "");
`;

function lockfile(version: string): string {
  const foreign = { version: "1.0.0", optional: true };
  return JSON.stringify({
    packages: { "": {}, "node_modules/typescript": { version }, "node_modules/foreign": foreign },
  });
}

function checkout(): string {
  const files = {
    "package.json": "{}",
    "package-lock.json": lockfile("6.0.3"),
    "tsconfig.json": "{}",
    "tsconfig.build.json": "{}",
    "src/cli/main.ts": "",
    "src/cli/other.ts": "",
    "npm.cjs": FAKE_NPM,
    "fake-tsc.js": FAKE_COMPILER,
  };
  return fileTree(files, SCRIPTS);
}

function setUp(folder: string, ...words: string[]): Promise<ProgramResult> {
  const environment = { npm_execpath: join(folder, "npm.cjs") };
  return runProgram(process.execPath, ["scripts/set-up.mjs", ...words], { folder, environment });
}

function calls(folder: string, program: "npm" | "compiler"): string[] {
  const path = join(folder, `${program}-calls`);
  return existsSync(path) ? readFileSync(path, "utf8").trim().split("\n") : [];
}

const NOTHING_SAID: ProgramResult = { status: 0, stdout: "", stderr: "" };

describe("set-up", () => {
  test("installs from the lockfile without running install scripts, then has nothing to say", async () => {
    const folder = checkout();
    expect(await setUp(folder)).toMatchObject({ status: 0, stderr: expect.stringContaining("installing") });
    expect(calls(folder, "npm")).toEqual([expect.stringMatching(/^ci .*--ignore-scripts .*--include=dev/)]);
    expect(await setUp(folder)).toEqual(NOTHING_SAID);
    expect(calls(folder, "npm")).toHaveLength(1);
  });

  test("installs again when the lockfile asks for another version", async () => {
    const folder = checkout();
    await setUp(folder);
    writeFileSync(join(folder, "package-lock.json"), lockfile("6.0.4"));
    await setUp(folder);
    expect(calls(folder, "npm")).toHaveLength(2);
  });

  test("does not mind that optional packages of other platforms are not installed", async () => {
    const folder = checkout();
    await setUp(folder);
    const installed = { packages: { "node_modules/typescript": { version: "6.0.3" } } };
    writeFileSync(join(folder, "node_modules/.package-lock.json"), JSON.stringify(installed));
    expect(await setUp(folder)).toEqual(NOTHING_SAID);
  });

  test("builds when asked to and something changed, and removes what has no source any more", async () => {
    const folder = checkout();
    await setUp(folder, "--build");
    expect(await setUp(folder, "--build")).toEqual(NOTHING_SAID);
    expect(calls(folder, "compiler")).toHaveLength(1);

    rmSync(join(folder, "src/cli/other.ts"));
    await setUp(folder, "--build");
    expect(calls(folder, "compiler")).toHaveLength(2);
    expect(existsSync(join(folder, "dist/cli/main.js"))).toBe(true);
    expect(existsSync(join(folder, "dist/cli/other.js"))).toBe(false);
  });

  test("does the work once when several run at the same time", async () => {
    const folder = checkout();
    const results = await Promise.all([1, 2, 3].map(() => setUp(folder, "--build")));
    expect(results.map(({ status }) => status)).toEqual([0, 0, 0]);
    expect(calls(folder, "npm")).toHaveLength(1);
    expect(calls(folder, "compiler")).toHaveLength(1);
    expect(existsSync(join(folder, ".set-up.lock"))).toBe(false);
  });

  test("takes over a lock whose holder is gone", async () => {
    const folder = checkout();
    const { stdout } = await runProgram(process.execPath, ["--eval", "console.log(process.pid)"]);
    writeFileSync(join(folder, ".set-up.lock"), stdout.trim());
    expect(await setUp(folder)).toMatchObject({ status: 0 });
    expect(calls(folder, "npm")).toHaveLength(1);
  });

  test("passes on what npm said when it fails", async () => {
    const folder = checkout();
    writeFileSync(join(folder, "npm.cjs"), 'console.error("no network"); process.exit(1);');
    const { status, stderr } = await setUp(folder);
    expect(status).toBe(1);
    expect(stderr).toContain("no network");
    expect(stderr).toContain("npm ci failed");
    expect(existsSync(join(folder, ".set-up.lock"))).toBe(false);
  });

  test("says in one line that Node is too old", async () => {
    const folder = checkout();
    const pretend = 'data:text/javascript,Object.defineProperty(process,"versions",{value:{node:"18.20.1"}})';
    const words = ["--import", pretend, "scripts/set-up.mjs"];
    const { status, stderr } = await runProgram(process.execPath, words, { folder });
    expect(status).toBe(1);
    expect(stderr).toBe("set-up: Warmpath needs Node 20.19 or newer; this is 18.20.1.\n");
    expect(calls(folder, "npm")).toEqual([]);
  });
});
