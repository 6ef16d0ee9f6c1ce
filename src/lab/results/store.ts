import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  parseProvenance,
  parseResults,
  type ReadOutcome,
  serialiseProvenance,
  serialiseResults,
} from "./results-json.ts";
import type { Provenance, ResultsFile } from "./types.ts";

/** Names of the files in a results folder. */
export const RESULTS_FILE = "results.json";
export const PROVENANCE_FILE = "provenance.json";
export const RECORDS_FILE = "records.jsonl.gz";

/** Writes results.json; whoever reads at the same moment, or after a crash, sees the old file or the new one, whole. */
export async function writeResults(folder: string, results: ResultsFile): Promise<void> {
  await writeWhole(folder, RESULTS_FILE, serialiseResults(results));
}

export async function writeProvenance(folder: string, provenance: Provenance): Promise<void> {
  await writeWhole(folder, PROVENANCE_FILE, serialiseProvenance(provenance));
}

/** Reads results.json of a folder; what is wrong with it is a value, since reports go on with the rest. */
export async function readResults(folder: string): Promise<ReadOutcome<ResultsFile>> {
  return readWith(join(folder, RESULTS_FILE), parseResults);
}

export async function readProvenance(folder: string): Promise<ReadOutcome<Provenance>> {
  return readWith(join(folder, PROVENANCE_FILE), parseProvenance);
}

async function readWith<Content>(
  path: string,
  parse: (text: string, source: string) => ReadOutcome<Content>,
): Promise<ReadOutcome<Content>> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    const detail = error instanceof Error && "code" in error ? String(error.code) : String(error);
    return { content: undefined, problems: [`${path}: cannot be read (${detail})`] };
  }
  return parse(text, path);
}

async function writeWhole(folder: string, name: string, text: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  const path = join(folder, name);
  await writeFile(`${path}.partial`, text);
  await rename(`${path}.partial`, path);
}
