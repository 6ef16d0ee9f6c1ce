import { existsSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { WarmpathError } from "../../../core/errors.ts";
import type { RequestRecord } from "../../../core/request-record.ts";
import { joinRecordsFiles } from "../../../lab/results/records-file.ts";
import { RECORDS_FILE, RESULTS_FILE } from "../../../lab/results/store.ts";
import { LoadMetrics } from "../../../loadgen/metrics.ts";
import type { LoadRun } from "../../../loadgen/types.ts";
import { writingTo } from "../../writing.ts";
import { type PreparedLoad, startOwnLoad } from "./compose.ts";
import { startProcessGroup } from "./process-group.ts";
import { RecordsOutput } from "./records-output.ts";

/** A load under way, in one process or several, with what goes to files and to Prometheus. */
export interface StartedLoad {
  readonly run: LoadRun;
  readonly metrics: LoadMetrics;
  readonly userFailures: () => number;
  /** Once the run is over: has everything on disk. */
  readonly close: () => Promise<void>;
}

/** Starts a load as it was prepared; `--ui` and the headless command both begin here. */
export async function startPrepared(
  prepared: PreparedLoad,
  log: (line: string) => void,
  /** Also told of every record, where the load is made by this process. */
  onRecord?: (record: RequestRecord) => void,
): Promise<StartedLoad> {
  const { out, processes } = prepared.settings;
  if (out !== undefined) await prepareFolder(out);
  return processes === 1 ? startInOneProcess(prepared, onRecord) : startInSeveral(prepared, log);
}

async function startInOneProcess(
  prepared: PreparedLoad,
  onRecord: ((record: RequestRecord) => void) | undefined,
): Promise<StartedLoad> {
  const { out, tokenTimes } = prepared.settings;
  const records = out === undefined ? undefined : new RecordsOutput(join(out, RECORDS_FILE), tokenTimes);
  const { run, userFailures, close } = await startOwnLoad(prepared, {
    onFirstToken: (ttftNs) => metrics.firstToken(ttftNs),
    onRecord: (record) => {
      metrics.ended(record);
      records?.add(record);
      onRecord?.(record);
    },
  });
  const metrics = new LoadMetrics(run);
  return {
    run,
    metrics,
    userFailures,
    close: async () => {
      await close();
      await records?.close();
    },
  };
}

async function startInSeveral(prepared: PreparedLoad, log: (line: string) => void): Promise<StartedLoad> {
  const { out, processes } = prepared.settings;
  const lost = new Set<number>();
  const partOf = (index: number): string => join(out ?? "", `.records-${index}.jsonl.gz`);
  const run = await startProcessGroup(prepared, {
    processes,
    recordsPath: (index) => (out === undefined ? undefined : partOf(index)),
    onSlice: (slice) => metrics.absorb(slice),
    onLost: (index, how) => {
      lost.add(index);
      log(
        `process ${index + 1} of ${processes} is lost, with its records and up to a second of what it counted: ${how}`,
      );
    },
  });
  const metrics = new LoadMetrics(run);
  return {
    run,
    metrics,
    userFailures: () => run.userFailures,
    close: async () => {
      if (out === undefined) return;
      const indices = Array.from({ length: processes }, (_, index) => index);
      // The file of a process that was killed has no end and cannot be read.
      const parts = indices.filter((index) => !lost.has(index)).map(partOf);
      await joinRecordsFiles(parts, join(out, RECORDS_FILE));
      await Promise.all(indices.map((index) => rm(partOf(index), { force: true })));
    },
  };
}

async function prepareFolder(folder: string): Promise<void> {
  // Its records would replace those that the results are made from.
  if (existsSync(join(folder, RESULTS_FILE))) {
    throw new WarmpathError(
      "WP_INVALID_INPUT",
      `--out ${folder}: has the results of an experiment; name another folder`,
    );
  }
  await writingTo(`--out ${folder}`, () => mkdir(folder, { recursive: true }));
}
