/** What is drawn beside the live values; the page knows these three by colour and dash. */
export type BaselineRole = "round-robin" | "kv" | "warmpath";

/** What a baseline has a value for; latencies in milliseconds, shares from 0 to 1. */
export type BaselineMetric =
  | `${"ttft" | "tpot" | "itl" | "e2e"}${"P50" | "P95" | "P99"}Ms`
  | "requestsPerSecond"
  | "outputTokensPerSecond"
  | "hitShare"
  | "errorShare";

/** All runs of one level together; null where they could not tell. */
export interface BaselineLevel {
  readonly concurrency: number;
  readonly runs: number;
  readonly values: Readonly<Record<BaselineMetric, number | null>>;
}

/** What one policy did, level by level. */
export interface BaselineArm {
  readonly role: BaselineRole;
  readonly policy: string;
  /** By concurrency, the lowest first. */
  readonly levels: readonly BaselineLevel[];
}

/** Where baselines come from, and how to get them again; null where nobody wrote it down. */
export interface BaselineSource {
  readonly experiment: string;
  readonly startedAt: string | null;
  readonly command: string | null;
}

/** Recorded sweeps to hold live values against. */
export interface Baselines {
  readonly sources: readonly BaselineSource[];
  readonly arms: readonly BaselineArm[];
}

/** A baseline's value at some concurrency: recorded there, drawn between two levels, or absent. */
export type BaselineReading =
  | { readonly kind: "recorded"; readonly value: number }
  | { readonly kind: "interpolated"; readonly value: number; readonly between: readonly [number, number] }
  | { readonly kind: "none" };

const NONE: BaselineReading = { kind: "none" };

/** The arm of a role, where there is one. */
export function baselineOf({ arms }: Baselines, role: BaselineRole): BaselineArm | undefined {
  return arms.find((arm) => arm.role === role);
}

/**
 * Reads a baseline at a concurrency: straight between the two levels around it, and never beyond the first or the last,
 * where queues begin and nothing is straight.
 */
export function lookUpBaseline(
  arm: BaselineArm | undefined,
  metric: BaselineMetric,
  concurrency: number,
): BaselineReading {
  if (arm === undefined) return NONE;
  const at = arm.levels.findIndex((level) => level.concurrency >= concurrency);
  if (at < 0) return NONE;
  const above = arm.levels[at];
  const upper = above.values[metric];
  if (above.concurrency === concurrency) return upper === null ? NONE : { kind: "recorded", value: upper };
  if (at === 0) return NONE;
  const below = arm.levels[at - 1];
  const lower = below.values[metric];
  if (lower === null || upper === null) return NONE;
  const share = (concurrency - below.concurrency) / (above.concurrency - below.concurrency);
  return {
    kind: "interpolated",
    value: lower + share * (upper - lower),
    between: [below.concurrency, above.concurrency],
  };
}
