import { mkdir, rm } from "node:fs/promises";
import { availableParallelism, arch, cpus, platform, totalmem } from "node:os";
import { join } from "node:path";
import { joinRecordsFiles } from "../../../lab/results/records-file.ts";
import {
  PROVENANCE_FILE,
  RECORDS_FILE,
  RESULTS_FILE,
  writeProvenance,
  writeResults,
} from "../../../lab/results/store.ts";
import { type Json, RESULTS_SCHEMA_VERSION, type ResultsFile } from "../../../lab/results/types.ts";
import { type FinishedCell, recordsPart } from "./cell-job.ts";

const PARTS_FOLDER = ".records";
/** Results are written again as cells finish, but not more often than this. */
const SAVE_INTERVAL_MS = 5000;

/** What a results folder is about. */
export interface RunIdentity {
  readonly experiment: string;
  readonly config: { readonly [key: string]: Json };
  readonly command: string;
  readonly version: string;
}

/** The results folder of a run, which has every finished cell also when the run is cut short. */
export class ResultsFolder {
  readonly partsFolder: string;
  readonly #folder: string;
  readonly #identity: RunIdentity;
  readonly #cells: FinishedCell[] = [];
  readonly #startedAt: string = new Date().toISOString();
  #savedMs = -Infinity;
  #saving: Promise<void> = Promise.resolve();

  private constructor(folder: string, identity: RunIdentity) {
    this.#folder = folder;
    this.#identity = identity;
    this.partsFolder = join(folder, PARTS_FOLDER);
  }

  static async create(folder: string, identity: RunIdentity): Promise<ResultsFolder> {
    const created = new ResultsFolder(folder, identity);
    // What an earlier run has left must not be mistaken for this one's.
    for (const name of [RESULTS_FILE, PROVENANCE_FILE, RECORDS_FILE, PARTS_FOLDER]) {
      await rm(join(folder, name), { recursive: true, force: true });
    }
    await mkdir(created.partsFolder, { recursive: true });
    return created;
  }

  async add(cell: FinishedCell): Promise<void> {
    this.#cells.push(cell);
    if (performance.now() - this.#savedMs < SAVE_INTERVAL_MS) return;
    this.#savedMs = performance.now();
    // One after the other: cells finish in several threads, and the files have one name.
    this.#saving = this.#saving.then(() => this.#save(null));
    await this.#saving;
  }

  /** Writes everything for the last time and joins the records. */
  async close(): Promise<void> {
    await this.#saving;
    const parts = this.#sorted().map(({ index }) => recordsPart(this.partsFolder, index));
    await joinRecordsFiles(parts, join(this.#folder, RECORDS_FILE));
    await this.#save(new Date().toISOString());
    await rm(this.partsFolder, { recursive: true, force: true });
  }

  #sorted(): FinishedCell[] {
    return [...this.#cells].sort((a, b) => a.index - b.index);
  }

  async #save(finishedAt: string | null): Promise<void> {
    const cells = this.#sorted();
    const { experiment, config, command, version } = this.#identity;
    const results: ResultsFile = {
      schemaVersion: RESULTS_SCHEMA_VERSION,
      experiment,
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
      startedAt: this.#startedAt,
      finishedAt,
      command,
      cellSeconds: Object.fromEntries(cells.map(({ result, seconds }) => [result.id, seconds])),
    });
  }
}
