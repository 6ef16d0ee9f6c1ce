import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, rmdir, writeFile } from "node:fs/promises";
import { availableParallelism, arch, cpus, platform, totalmem } from "node:os";
import { join } from "node:path";
import { joinRecordsFiles } from "../../../lab/results/records-file.ts";
import { RECORDS_FILE, writeProvenance, writeResults } from "../../../lab/results/store.ts";
import { type Json, type Provenance, RESULTS_SCHEMA_VERSION, type ResultsFile } from "../../../lab/results/types.ts";
import { type FinishedCell, recordsPart } from "./cell-job.ts";
import { EarlierRun } from "./earlier-run.ts";
import { invalid } from "./experiment-file.ts";
import { CELLS_FOLDER, checkFolderOwner, RUN_FILE } from "./folder-ownership.ts";

/** Results are written again as cells finish, but not more often than this. */
const SAVE_INTERVAL_MS = 5000;

/** What a results folder is about. */
export interface RunIdentity {
  readonly experiment: string;
  readonly config: { readonly [key: string]: Json };
  /** Absent for the twin. */
  readonly target?: string | undefined;
  /** What else results follow from, such as the code of the twin. */
  readonly code: string;
  readonly command: string;
  /** Absent for presets. */
  readonly experimentFolder?: string | undefined;
  readonly version: string;
}

/** What is known of a run that is not complete. */
interface RunState {
  readonly key: string;
  readonly startedAt: string;
  readonly resumed: NonNullable<Provenance["resumed"]>;
}

/** A folder that a run may write to. */
interface OpenedFolder {
  readonly folder: string;
  readonly isOurs: boolean;
  readonly earlier: EarlierRun | undefined;
}

/** What the frame of results.json has besides, found while cells are run. */
export type LiveFrame = Pick<ResultsFile, "comparability" | "arms">;

/** The results folder of a run, which has every finished cell also when the run is cut short, and goes on from there. */
export class ResultsFolder {
  readonly partsFolder: string;
  readonly #folder: string;
  readonly #identity: RunIdentity;
  readonly #cells: FinishedCell[];
  readonly #state: RunState;
  readonly #order: string[];
  /** What this run replaces once it has a cell; absent where it goes on with one that was cut short. */
  readonly #earlier: EarlierRun | undefined;
  /** Whether the folder was made for this run. */
  readonly #isOurs: boolean;
  #replacing: Promise<void> | undefined;
  #frame: LiveFrame = {};
  #savedMs = -Infinity;
  #saving: Promise<void> = Promise.resolve();

  private constructor(
    { folder, isOurs, earlier }: OpenedFolder,
    identity: RunIdentity,
    state: RunState,
    finished: FinishedCell[],
  ) {
    this.#folder = folder;
    this.#isOurs = isOurs;
    this.#earlier = earlier;
    this.#identity = identity;
    this.#state = state;
    this.#cells = finished;
    this.#order = finished.map(({ result }) => result.id);
    this.partsFolder = join(folder, CELLS_FOLDER);
  }

  /** Opens a folder: where the same run was cut short there, with what it had finished, unless that is not wanted. */
  static async open(folder: string, identity: RunIdentity, fresh: boolean): Promise<ResultsFolder> {
    const key = keyOf(identity);
    await checkFolderOwner(folder, identity.experiment, fresh);
    await EarlierRun.settle(folder, (await readFinished(folder)).length > 0);
    const before = fresh ? undefined : await readState(folder);
    const finished = before === undefined ? [] : await readFinished(folder);
    if (before !== undefined && before.key !== key && finished.length > 0) {
      throw invalid(
        `${folder} has ${finished.length} finished cells of another run that was cut short; name another folder, or give --fresh to replace them`,
      );
    }
    const now = new Date().toISOString();
    const isResumed = before?.key === key && finished.length > 0;
    const state: RunState = isResumed
      ? { ...before, resumed: [...before.resumed, { at: now, finishedCells: finished.length }] }
      : { key, startedAt: now, resumed: [] };
    const isOurs = (await mkdir(folder, { recursive: true })) !== undefined;
    const earlier = isResumed ? undefined : await EarlierRun.setAside(folder);
    await mkdir(join(folder, CELLS_FOLDER), { recursive: true });
    await writeJson(join(folder, CELLS_FOLDER, RUN_FILE), state);
    return new ResultsFolder({ folder, isOurs, earlier }, identity, state, isResumed ? finished : []);
  }

  /** Cells that were finished before this process began. */
  get finished(): readonly FinishedCell[] {
    return this.#cells;
  }

  /** How often the run has gone on after it was cut short. */
  get resumes(): number {
    return this.#state.resumed.length;
  }

  /** Keeps a finished cell: once this has resolved, nothing can lose it. */
  async add(cell: FinishedCell): Promise<void> {
    await writeJson(cellFile(this.partsFolder, cell.index), cell);
    this.#cells.push(cell);
    this.#order.push(cell.result.id);
    this.#replacing ??= this.#earlier?.discard();
    await this.#replacing;
    if (performance.now() - this.#savedMs < SAVE_INTERVAL_MS) return;
    this.#savedMs = performance.now();
    // One after the other: cells finish in several threads, and the files have one name.
    this.#saving = this.#saving.then(() => this.#save(null));
    await this.#saving;
  }

  /** What belongs to the whole and not to a cell. */
  describe(frame: LiveFrame): void {
    this.#frame = frame;
  }

  /**
   * Writes everything for the last time and joins the records; keeps the cells apart if more are to come another day. A
   * run that has finished nothing leaves the folder as it was.
   */
  async close(isComplete: boolean): Promise<void> {
    await this.#replacing;
    await this.#saving;
    if (this.#cells.length === 0) return this.#leave();
    const parts = this.#sorted().map(({ index }) => recordsPart(this.partsFolder, index));
    await joinRecordsFiles(parts, join(this.#folder, RECORDS_FILE));
    await this.#save(isComplete ? new Date().toISOString() : null);
    if (isComplete) await rm(this.partsFolder, { recursive: true, force: true });
  }

  async #leave(): Promise<void> {
    await this.#earlier?.putBack();
    // Somebody may have put something there meanwhile, and then it stays.
    if (this.#isOurs) await rmdir(this.#folder).catch(() => {});
  }

  #sorted(): FinishedCell[] {
    return [...this.#cells].sort((a, b) => a.index - b.index);
  }

  async #save(finishedAt: string | null): Promise<void> {
    const cells = this.#sorted();
    const { experiment, config, command, experimentFolder, version, target } = this.#identity;
    const { startedAt, resumed } = this.#state;
    const results: ResultsFile = {
      schemaVersion: RESULTS_SCHEMA_VERSION,
      experiment,
      ...(target === undefined ? {} : { target, ...this.#frame }),
      config,
      cells: cells.map(({ result }) => result),
    };
    await writeResults(this.#folder, results);
    await writeProvenance(this.#folder, {
      schemaVersion: RESULTS_SCHEMA_VERSION,
      host: {
        platform: platform(),
        architecture: arch(),
        processor: cpus()[0]?.model ?? "unknown",
        cores: availableParallelism(),
        memoryBytes: totalmem(),
      },
      versions: { warmpath: version, node: process.versions.node },
      startedAt,
      finishedAt,
      command,
      ...(experimentFolder === undefined ? {} : { experimentFolder }),
      cellSeconds: Object.fromEntries(cells.map(({ result, seconds }) => [result.id, seconds])),
      ...(target === undefined ? {} : { order: this.#order }),
      ...(resumed.length === 0 ? {} : { resumed }),
    });
  }
}

/** Equal keys: the same run, which may go on where it was. */
function keyOf({ experiment, config, target = "simulation", code }: RunIdentity): string {
  return createHash("sha256").update(JSON.stringify({ experiment, config, target, code })).digest("hex");
}

async function readState(folder: string): Promise<RunState | undefined> {
  return (await readJson(join(folder, CELLS_FOLDER, RUN_FILE))) as RunState | undefined;
}

/** Cells that are whole: entry and records. A cell that was being written when the process ended is run again. */
async function readFinished(folder: string): Promise<FinishedCell[]> {
  const cells = join(folder, CELLS_FOLDER);
  const names = (await readdir(cells).catch(() => [])).filter((name) => /^\d+\.json$/.test(name)).sort();
  const finished = await Promise.all(names.map((name) => readJson(join(cells, name))));
  return (finished as (FinishedCell | undefined)[]).flatMap((cell) => {
    return cell !== undefined && existsSync(recordsPart(cells, cell.index)) ? cell : [];
  });
}

function cellFile(folder: string, index: number): string {
  return join(folder, `${String(index).padStart(5, "0")}.json`);
}

async function readJson(path: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(path, "utf8")) as unknown;
  } catch {
    return undefined;
  }
}

async function writeJson(path: string, value: object): Promise<void> {
  await writeFile(`${path}.partial`, JSON.stringify(value));
  await rename(`${path}.partial`, path);
}
