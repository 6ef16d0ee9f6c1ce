import { readdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { RECORDS_FILE, RESULTS_FILE } from "../../../lab/results/store.ts";
import { AIPERF_RECORDS_FILE } from "../../../wire/aiperf/record-line.ts";
import { AIPERF_SUMMARY_FILE } from "../../../wire/aiperf/summary-file.ts";
import { LOAD_SUMMARY_FILE } from "./read-load.ts";

/** A folder with something to report, and the argument that led to it. */
export interface FoundFolder {
  readonly kind: "warmpath" | "aiperf" | "load";
  readonly path: string;
  /** Number of the argument. */
  readonly argument: number;
}

const DEEPEST = 6;

/** Looks for results in folders and below them; a folder without any is one line. */
export async function findFolders(
  arguments_: readonly string[],
): Promise<{ found: FoundFolder[]; problems: string[] }> {
  const found: FoundFolder[] = [];
  const problems: string[] = [];
  for (const [argument, name] of arguments_.entries()) {
    const before = found.length;
    try {
      await search(resolve(name), argument, 0, found);
    } catch (error) {
      const detail = error instanceof Error && "code" in error ? String(error.code) : String(error);
      problems.push(`${name}: cannot be read (${detail})`);
      continue;
    }
    if (found.length === before) {
      problems.push(`${name}: has neither ${RESULTS_FILE} nor ${AIPERF_SUMMARY_FILE} or ${AIPERF_RECORDS_FILE} in it`);
    }
  }
  return { found, problems };
}

async function search(path: string, argument: number, depth: number, found: FoundFolder[]): Promise<void> {
  const entries = await readdir(path, { withFileTypes: true });
  const names = new Set(entries.filter((entry) => !entry.isDirectory()).map((entry) => entry.name));
  if (names.has(RESULTS_FILE)) {
    found.push({ kind: "warmpath", path, argument });
    return;
  }
  if (names.has(RECORDS_FILE) && names.has(LOAD_SUMMARY_FILE)) {
    found.push({ kind: "load", path, argument });
    return;
  }
  if (names.has(AIPERF_SUMMARY_FILE) || names.has(AIPERF_RECORDS_FILE)) found.push({ kind: "aiperf", path, argument });
  if (depth === DEEPEST) return;
  const folders = entries
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith("."))
    .map((entry) => entry.name);
  for (const folder of folders.sort((a, b) => a.localeCompare(b, "en", { numeric: true }))) {
    await search(join(path, folder), argument, depth + 1, found);
  }
}
