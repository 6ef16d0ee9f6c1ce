import { join } from "node:path";
import { NS_PER_SECOND, type Nanoseconds } from "../../../core/clock.ts";
import { WarmpathError } from "../../../core/errors.ts";
import type { DecisionLog } from "../../../core/record/decision-log.ts";
import type { DecisionRecord } from "../../../core/record/decision-record.ts";
import type { RequestRecord } from "../../../core/request-record.ts";
import { Router } from "../../../core/router.ts";
import { type Cell, cellsOf } from "../../../lab/experiment/cells.ts";
import { readExperiment } from "../../../lab/experiment/read.ts";
import type { Experiment } from "../../../lab/experiment/types.ts";
import { cellWorkload, type PreparedTrace } from "../../../lab/experiment/workload.ts";
import { readRecords } from "../../../lab/results/records-file.ts";
import { readProvenance, readResults, RECORDS_FILE } from "../../../lab/results/store.ts";
import type { Json, ResultsFile } from "../../../lab/results/types.ts";
import { simulateFleet } from "../../../sim/fleet/virtual-fleet.ts";
import { readTrace, whereTraceIsNot } from "../run/experiment-file.ts";
import { simulatedFleet } from "../run/simulated-fleet.ts";

/** The last decisions before the replay ends; the one that is asked for is among the very last. */
const RECORDS = { detail: "full", capacity: 10_000 } as const;

/** A request of a finished run on the twin, and every attempt to place it, taken down in full. */
export interface ReplayedRequest {
  readonly cell: string;
  /** As it is in the results. */
  readonly record: RequestRecord;
  /** The first attempt first. */
  readonly attempts: readonly DecisionRecord[];
}

/**
 * Runs the cell of a request again up to the moment at which it was placed, this time with full records. Results keep only what
 * was chosen, and the same cell runs the same way again.
 */
export async function replayRequest(
  folder: string,
  request: string,
  cellName: string | undefined,
): Promise<ReplayedRequest> {
  const results = await twinResults(folder);
  const { experiment, trace } = await settingOf(results, folder);
  const cell = chosenCell(cellsOf(experiment), results, cellName);
  const record = await recordOf(folder, cell.id, request);
  const decidedNs = record.placedNs ?? record.endNs;
  if (decidedNs === undefined) throw invalid(`request ${request} was still waiting when ${cell.id} ended`);
  const attempts = replay(
    { experiment, trace, cell, tokensPerSequence: numberOf(results, "tokensPerSequence") },
    decidedNs,
  ).attempts(request);
  const last = attempts.at(-1);
  if (last === undefined || String(last.decision) !== record.decision || (last.chosen ?? undefined) !== record.worker) {
    throw invalid(
      `request ${request} of ${cell.id} went another way when it was run again: ${folder} is of another version; run the experiment again`,
    );
  }
  return { cell: cell.id, record, attempts };
}

interface ReplaySetting {
  readonly experiment: Experiment;
  readonly trace: PreparedTrace | undefined;
  readonly cell: Cell;
  readonly tokensPerSequence: number;
}

function replay({ experiment, trace, cell, tokensPerSequence }: ReplaySetting, decidedNs: Nanoseconds): DecisionLog {
  const parts = simulatedFleet(cell, experiment.signals, tokensPerSequence, undefined, RECORDS);
  const { timeoutSeconds } = experiment;
  simulateFleet({
    ...parts,
    source: cellWorkload(experiment, cell, trace).source,
    offerUntilNs: decidedNs + 1,
    drainNs: 0,
    ...(timeoutSeconds === undefined ? {} : { timeoutNs: Math.round(timeoutSeconds * NS_PER_SECOND) }),
  });
  if (!(parts.router instanceof Router)) throw new WarmpathError("WP_INVALID_STATE", "a cell has more than one router");
  return parts.router.log;
}

async function twinResults(folder: string): Promise<ResultsFile> {
  const { content, problems } = await readResults(folder);
  if (content === undefined) throw invalid(problems[0] ?? `${folder}: no results.json`);
  if (content.target === undefined) return content;
  throw invalid(
    `${folder} is of a run on ${content.target}, which cannot be run again; a gateway keeps its last decisions: GET /admin/decisions/ID`,
  );
}

/** The experiment that results were made from: what they say of it, less what was worked out from it. */
async function settingOf(
  { config }: ResultsFile,
  folder: string,
): Promise<{ experiment: Experiment; trace: PreparedTrace | undefined }> {
  const { kvPools: _pools, tokensPerSequence: _tokens, traceProvenance, workload, ...rest } = config;
  const { conversationParameters: _parameters, ...given } = (workload ?? {}) as { [key: string]: Json };
  const { experiment, problems } = readExperiment({ ...rest, workload: given });
  if (experiment === undefined)
    throw invalid(`${folder}: its configuration cannot be run by this version: ${problems[0]}`);
  const wanted = experiment.workload.trace;
  if (wanted === undefined) return { experiment, trace: undefined };
  const { content: provenance } = await readProvenance(folder);
  const beside = provenance?.experimentFolder;
  const trace = await readTrace(wanted, folder, ...(beside === undefined ? [] : [beside]));
  if (trace === undefined) throw invalid(`${folder}: ${whereTraceIsNot(wanted)}`);
  const { sha256 = "none" } = (traceProvenance ?? {}) as { sha256?: string };
  if (trace.provenance.sha256 !== sha256) {
    throw invalid(
      `${folder} was made with another ${trace.provenance.source}: its sha256 is ${trace.provenance.sha256}, then ${sha256}`,
    );
  }
  return { experiment, trace };
}

function chosenCell(cells: readonly Cell[], { cells: finished }: ResultsFile, name: string | undefined): Cell {
  const ids = finished.map(({ id }) => id);
  const wanted = name ?? (ids.length === 1 ? ids[0] : undefined);
  if (wanted === undefined)
    throw invalid(`every cell has such a request; name one of ${ids.length} with --cell, such as ${ids[0]}`);
  const cell = ids.includes(wanted) ? cells.find(({ id }) => id === wanted) : undefined;
  if (cell === undefined) throw invalid(`there is no cell "${wanted}"; there are ${shortened(ids)}`);
  return cell;
}

async function recordOf(folder: string, cell: string, request: string): Promise<RequestRecord> {
  const known: string[] = [];
  for await (const { cell: of, record } of readRecords(join(folder, RECORDS_FILE))) {
    if (of !== cell) continue;
    if (record.id === request) return record;
    known.push(record.id);
  }
  throw invalid(`there is no request "${request}" in ${cell}; there are ${shortened(known)}`);
}

function shortened(names: readonly string[]): string {
  const few = names.slice(0, 5).join(", ");
  return names.length > 5 ? `${few} and ${names.length - 5} more` : few || "none";
}

function numberOf({ config }: ResultsFile, name: string): number {
  const value = config[name];
  if (typeof value !== "number") throw invalid(`results.json: config.${name} must be a number`);
  return value;
}

function invalid(message: string): WarmpathError {
  return new WarmpathError("WP_INVALID_INPUT", message);
}
