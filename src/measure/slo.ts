import { NS_PER_MS } from "../core/clock.ts";
import type { RequestRecord } from "../core/request-record.ts";
import { e2eNs, tpotNs, ttftNs } from "./latencies.ts";
import type { LatencySummary } from "./summary.ts";

/** Upper limits that a request must keep, each optional; without any, completing is enough. */
export interface Slo {
  readonly ttftMs?: number | undefined;
  readonly tpotMs?: number | undefined;
  readonly e2eMs?: number | undefined;
}

export type SloTerm = keyof Slo;

const SLO_TERMS: readonly SloTerm[] = ["ttftMs", "tpotMs", "e2eMs"];

/** Whether a completed request kept every limit; an answer of one token keeps any limit on the time per token. */
export function keepsSlo(record: RequestRecord, slo: Slo): boolean {
  return (
    isWithin(ttftNs(record) ?? Infinity, slo.ttftMs) &&
    isWithin(tpotNs(record) ?? 0, slo.tpotMs) &&
    isWithin(e2eNs(record) ?? Infinity, slo.e2eMs)
  );
}

/** `unknown`: too few requests to tell. */
export type SloVerdict = "met" | "missed" | "unknown";

/** Whether an arm meets an SLO at a level: its p95 over all offered requests is within every limit. */
export function sloVerdict(offered: Readonly<Record<SloTerm, LatencySummary>>, slo: Slo): SloVerdict {
  let verdict: SloVerdict = "met";
  for (const term of SLO_TERMS) {
    const limitMs = slo[term];
    if (limitMs === undefined) continue;
    const { p95, states } = offered[term];
    if (states.p95 === "not-reached" || (p95 !== null && p95 > limitMs)) return "missed";
    if (states.p95 === "too-few") verdict = "unknown";
  }
  return verdict;
}

function isWithin(valueNs: number, limitMs: number | undefined): boolean {
  return limitMs === undefined || valueNs <= limitMs * NS_PER_MS;
}
