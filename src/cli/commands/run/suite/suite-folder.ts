import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { invalid } from "../experiment-file.ts";

/** Names of the files in a suite's folder. */
export const JOURNAL_FILE = "finished.jsonl";
export const SUITE_FILE = "suite.json";
export const LEAGUE_FILE = "league.md";
export const REGRET_FILE = "regret.md";

/** Refuses a folder in which a suite would replace the tables of another, or write into what is somebody else's. */
export async function checkSuiteFolder(folder: string, suite: string): Promise<void> {
  const owner = field(await read(folder, SUITE_FILE), "suite");
  const journal = await read(folder, JOURNAL_FILE);
  // A line that was cut by a crash may be the only one; a file without any is nobody's.
  const isOwnJournal = journal === undefined || journal.trim() === "" || journal.startsWith('{"key":"');
  const isOurs = owner !== undefined || (journal !== undefined && isOwnJournal);
  const foreign = [SUITE_FILE, LEAGUE_FILE, REGRET_FILE].find(
    (name) => existsSync(join(folder, name)) && (name === SUITE_FILE ? owner === undefined : !isOurs),
  );
  const lost = foreign ?? (isOwnJournal ? undefined : JOURNAL_FILE);
  if (lost !== undefined) throw invalid(`${folder} has a ${lost} that no suite has written; name another folder`);
  if (owner === undefined || owner === suite) return;
  throw invalid(`${folder} has the results of another suite, ${owner}; name another folder`);
}

async function read(folder: string, name: string): Promise<string | undefined> {
  return await readFile(join(folder, name), "utf8").catch(() => undefined);
}

function field(text: string | undefined, name: string): string | undefined {
  try {
    const value = (JSON.parse(text ?? "") as Record<string, unknown> | null)?.[name];
    return typeof value === "string" ? value : undefined;
  } catch {
    return undefined;
  }
}
