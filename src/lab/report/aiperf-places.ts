import type { AiperfSummary } from "../../wire/aiperf/summary-file.ts";
import type { ReportLevel } from "./cell.ts";

/** What the folders above a run of AIPerf say of it. */
export interface RunPath {
  /** What is neither a level nor a run; empty if nothing is left. */
  readonly arm: readonly string[];
  /** Those of them that stand before a number of workers in one name: an arm's, as in `kv-n2`, or a card's, as in `a100-n2`. */
  readonly besideWorkers: readonly string[];
  readonly run: number | undefined;
  readonly level: Partial<ReportLevel>;
}

/** Folders that AIPerf puts in between, which name nothing. */
const NAMELESS: ReadonlySet<string> = new Set(["profile_runs", "artifacts", "results", "."]);
const RUN = /^(?:profile[_-])?(?:run|trial|rep|repeat|repetition)[_-]?0*(\d+)$/i;
const CONCURRENCY = /^(?:concurrency|conc|c)[_=-]?(\d+)$/i;
const RATE = /^(?:request[_-]rate|rate|qps|rps)[_=-]?(\d+(?:\.\d+)?)$/i;
const WORKERS = /^(?:n|workers?|replicas?)[_=-]?(\d+)$/i;
/** A name that ends in a number of workers, such as `a100-n2`. */
const NAMED_WORKERS = /[-_](?:n|workers?)[_=-]?(\d+)$/i;

/** Reads the folders between what all runs have in common and a run. */
export function readRunPath(folders: readonly string[]): RunPath {
  const arm: string[] = [];
  const besideWorkers: string[] = [];
  let run: number | undefined;
  const level: { concurrency?: number; rateRps?: number; workers?: number } = {};
  for (const folder of folders) {
    const match = (pattern: RegExp): number | undefined => {
      const digits = pattern.exec(folder)?.[1];
      return digits === undefined ? undefined : Number(digits);
    };
    const ofRun = match(RUN);
    const concurrency = match(CONCURRENCY);
    const rateRps = match(RATE);
    const workers = match(WORKERS);
    const named = NAMED_WORKERS.exec(folder);
    if (ofRun !== undefined) run = ofRun;
    else if (concurrency !== undefined) level.concurrency = concurrency;
    else if (rateRps !== undefined) level.rateRps = rateRps;
    else if (workers !== undefined) level.workers = workers;
    else if (named !== null) {
      level.workers = Number(named[1]);
      const name = folder.slice(0, named.index);
      arm.push(name);
      besideWorkers.push(name);
    } else if (!NAMELESS.has(folder)) arm.push(folder);
  }
  return { arm, besideWorkers, run, level };
}

/** The load that AIPerf was told to drive; the folders say it where the file does not. */
export function levelOfRun(summary: AiperfSummary | undefined, folders: readonly string[], path: RunPath): ReportLevel {
  const config = summary?.inputConfig ?? {};
  const load = objectIn(config, "loadgen");
  const isScheduled = objectIn(config, "input")["fixed_schedule"] === true;
  const rateRps = positive(load["request_rate"]) ?? path.level.rateRps;
  const concurrency = positive(load["concurrency"]) ?? path.level.concurrency;
  const workers = path.level.workers ?? workersIn(folders) ?? workersIn(artifactFolders(config));
  const driven = isScheduled
    ? { speed: positive(objectIn(objectIn(config, "input"), "synthesis")["speedup_ratio"]) ?? 1 }
    : rateRps !== undefined
      ? { rateRps }
      : concurrency !== undefined
        ? { concurrency }
        : {};
  return { ...driven, workers };
}

/** What varies with the level, and is compared level by level. */
const OF_THE_LEVEL: ReadonlySet<string> = new Set([
  "concurrency",
  "request_rate",
  "request_count",
  "benchmark_duration",
  "warmup_request_count",
]);

/**
 * What AIPerf was configured with, for telling whether two arms differ in more than one thing. What differs between the
 * deployments is not in its files, so the arm itself counts as one.
 */
export function settingsOfRun(summary: AiperfSummary, arm: string): Map<string, string> {
  const config = summary.inputConfig;
  const { urls: _urls, url: _url, ...served } = objectIn(config, "endpoint");
  const { file, ...input } = objectIn(config, "input");
  const load = Object.entries(objectIn(config, "loadgen")).filter(([name]) => !OF_THE_LEVEL.has(name));
  const kept: [string, unknown][] = [
    ["arm", arm],
    ["endpoint", served],
    ["input", input],
    ["input file", typeof file === "string" ? file.split("/").at(-1) : undefined],
    ["load", Object.fromEntries(load)],
    ["tokenizer", objectIn(config, "tokenizer")["name"]],
  ];
  return new Map(kept.flatMap(([name, value]) => (isEmpty(value) ? [] : [[name, sortedText(value)]])));
}

/** The nearest folder that names a number of workers. */
function workersIn(folders: readonly string[]): number | undefined {
  for (const folder of folders.toReversed()) {
    const digits = WORKERS.exec(folder)?.[1] ?? NAMED_WORKERS.exec(folder)?.[1];
    if (digits !== undefined) return Number(digits);
  }
  return undefined;
}

function artifactFolders(config: object): string[] {
  const folder = objectIn(config, "output")["artifact_directory"];
  return typeof folder === "string" ? folder.split("/") : [];
}

function objectIn(value: object, name: string): Readonly<Record<string, unknown>> {
  const found = (value as Readonly<Record<string, unknown>>)[name];
  return typeof found === "object" && found !== null && !Array.isArray(found)
    ? (found as Readonly<Record<string, unknown>>)
    : {};
}

function positive(value: unknown): number | undefined {
  return typeof value === "number" && value > 0 ? value : undefined;
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || (typeof value === "object" && Object.keys(value).length === 0);
}

function sortedText(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === "object" && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}
