import { z } from "zod";
import { problemLines } from "./problems.ts";
import type { ReadOutcome } from "./results-json.ts";
import type { CellLevel } from "./types.ts";

/** Raised when a reader of the old form would misread the new one. */
export const BASELINES_SCHEMA_VERSION = 1;

/** What a live page shows beside its own numbers: what each policy did at each level when it was measured. */
export interface Baselines {
  readonly schemaVersion: typeof BASELINES_SCHEMA_VERSION;
  /** The runs that the points come from. */
  readonly sources: readonly BaselineSource[];
  readonly points: readonly BaselinePoint[];
}

/** Where points come from, and how to get them again. */
export interface BaselineSource {
  readonly experiment: string;
  /** ISO 8601 in UTC; null where nobody wrote it down. */
  readonly startedAt: string | null;
  /** The command that repeats the run; null where nobody wrote it down. */
  readonly command: string | null;
}

/** A latency as a page shows it; null where it was not reached or had too few requests. Milliseconds. */
export interface BaselinePercentiles {
  readonly p50: number | null;
  readonly p95: number | null;
  readonly p99: number | null;
}

/**
 * One policy at one level, all runs together. Latencies are those of completed requests, as a rolling window has them;
 * `errorShare` says how many others there were.
 */
export interface BaselinePoint {
  readonly arm: string;
  readonly policy: string;
  readonly level: Omit<CellLevel, "workers"> & { readonly workers: number | null };
  readonly ttftMs: BaselinePercentiles;
  readonly tpotMs: BaselinePercentiles;
  readonly itlMs: BaselinePercentiles;
  readonly e2eMs: BaselinePercentiles;
  /** Share of prompt tokens found in a cache; null where it is unknown. */
  readonly hitShare: number | null;
  readonly requestsPerSecond: number | null;
  readonly outputTokensPerSecond: number | null;
  /** Share of offered requests that did not complete. */
  readonly errorShare: number;
  readonly offered: number;
  readonly runs: number;
  /** Number of the source, and the ids of its cells that made the point. */
  readonly madeBy: { readonly source: number; readonly cells: readonly string[] };
}

const orNull = (inner: z.ZodNumber): z.ZodType<number | null> =>
  z.union([inner, z.null()], { error: "must be a number or null" });
const textOrNull = z.union([z.string(), z.null()], { error: "must be a text or null" });
const amount = z.number().min(0);
const count = z.int().min(0);
const percentiles = z.object({ p50: orNull(amount), p95: orNull(amount), p99: orNull(amount) });

const baselinesSchema: z.ZodType<Baselines> = z.object({
  schemaVersion: z.literal(BASELINES_SCHEMA_VERSION),
  sources: z.array(z.object({ experiment: z.string().min(1), startedAt: textOrNull, command: textOrNull })),
  points: z.array(
    z.object({
      arm: z.string().min(1),
      policy: z.string().min(1),
      level: z.object({
        concurrency: z.int().min(1).optional(),
        rateRps: z.number().gt(0).optional(),
        speed: z.number().gt(0).optional(),
        workers: orNull(z.int().min(1)),
      }),
      ttftMs: percentiles,
      tpotMs: percentiles,
      itlMs: percentiles,
      e2eMs: percentiles,
      hitShare: orNull(z.number().min(0).max(1)),
      requestsPerSecond: orNull(amount),
      outputTokensPerSecond: orNull(amount),
      errorShare: z.number().min(0).max(1),
      offered: count,
      runs: z.int().min(1),
      madeBy: z.object({ source: count, cells: z.array(z.string()) }),
    }),
  ),
});

/** The text of a baselines file. */
export function serialiseBaselines(baselines: Baselines): string {
  return `${JSON.stringify(baselines, null, 2)}\n`;
}

/** Reads the text of a baselines file from anywhere; what is wrong with it is one line each. */
export function parseBaselines(text: string, source: string): ReadOutcome<Baselines> {
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error);
    return { content: undefined, problems: [`${source}: is not complete JSON: ${detail}`] };
  }
  const parsed = baselinesSchema.safeParse(content);
  if (parsed.success) return { content: parsed.data, problems: [] };
  return { content: undefined, problems: problemLines(parsed.error, content).map((line) => `${source}: ${line}`) };
}
