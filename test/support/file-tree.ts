import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { onTestFinished } from "vitest";
import { REPOSITORY } from "./run-program.ts";

/** A folder with the given files and copies of some of the repository's, gone when the test is over. */
export function fileTree(files: Readonly<Record<string, string>>, copied: readonly string[] = []): string {
  const folder = mkdtempSync(join(tmpdir(), "warmpath-tree-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), content);
  }
  for (const name of copied) cpSync(join(REPOSITORY, name), join(folder, name));
  return folder;
}

/** Gives a tree the repository's packages; some tools look for their other half in the folder they run in. */
export function linkPackages(folder: string): void {
  symlinkSync(join(REPOSITORY, "node_modules"), join(folder, "node_modules"), "junction");
}
