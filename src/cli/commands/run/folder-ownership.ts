import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { PROVENANCE_FILE, RECORDS_FILE, RESULTS_FILE } from "../../../lab/results/store.ts";
import { invalid } from "./experiment-file.ts";

/** Finished cells, one by one, as long as a run is not complete. */
export const CELLS_FOLDER = ".cells";
/** Those of an earlier run, as long as the new one has none to put in their place. */
export const ASIDE_FOLDER = ".cells-before";
/** Beside the cells: what run they are of. */
export const RUN_FILE = "run.json";

/** What a run puts into a folder, and may find there. */
const OWN_NAMES = [RESULTS_FILE, PROVENANCE_FILE, RECORDS_FILE, CELLS_FOLDER, ASIDE_FOLDER];

/**
 * Refuses a folder in which a run would replace what no run of the experiment has put there: somebody else's files, always;
 * results of another experiment, unless told.
 */
export async function checkFolderOwner(folder: string, experiment: string, isReplacing: boolean): Promise<void> {
  const found = OWN_NAMES.filter((name) => existsSync(join(folder, name)));
  const owner = await ownerOf(folder);
  const isCutShort = [CELLS_FOLDER, ASIDE_FOLDER].some((name) => existsSync(join(folder, name, RUN_FILE)));
  const foreign = found.find((name) =>
    name === CELLS_FOLDER || name === ASIDE_FOLDER
      ? !existsSync(join(folder, name, RUN_FILE))
      : owner === undefined && (name === RESULTS_FILE || !isCutShort),
  );
  if (foreign !== undefined) {
    throw invalid(`${folder} has a ${foreign} that no experiment has written, and would lose it; name another folder`);
  }
  if (owner === undefined || owner === experiment || isReplacing) return;
  throw invalid(
    `${folder} has the results of another experiment, ${owner}; name another folder, or give --fresh to replace them`,
  );
}

/** Name of the experiment whose results are in a folder; undefined if none are. */
async function ownerOf(folder: string): Promise<string | undefined> {
  const content = await contentOf(folder);
  return typeof content?.experiment === "string" && Array.isArray(content.cells) ? content.experiment : undefined;
}

/** Ids of the cells whose results are in a folder. */
export async function cellIdsIn(folder: string): Promise<string[]> {
  const cells = (await contentOf(folder))?.cells;
  if (!Array.isArray(cells)) return [];
  return cells.flatMap((cell: { readonly id?: unknown } | null) => (typeof cell?.id === "string" ? [cell.id] : []));
}

interface WrittenResults {
  readonly experiment?: unknown;
  readonly cells?: unknown;
}

async function contentOf(folder: string): Promise<WrittenResults | undefined> {
  try {
    return (JSON.parse(await readFile(join(folder, RESULTS_FILE), "utf8")) as WrittenResults | null) ?? undefined;
  } catch {
    return undefined;
  }
}
