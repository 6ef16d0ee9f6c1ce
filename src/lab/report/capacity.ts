import type { Slo, SloTerm } from "../../measure/slo.ts";
import { compareLevels, type ReportLevel } from "./cell.ts";
import type { ArmAtLevel } from "./groups.ts";
import type { Reading } from "./reading.ts";

/** Up to which load an arm meets a limit; by p95 over all offered requests. */
export interface Capacity {
  readonly arm: string;
  readonly workers: number | undefined;
  readonly limit: { readonly title: string; readonly terms: Slo };
  /** Levels by rising load, and whether each meets the limit. */
  readonly levels: readonly { readonly level: ReportLevel; readonly verdict: LimitVerdict; readonly p95: Reading }[];
  /** The largest load that meets it; undefined if none does. */
  readonly largest: ReportLevel | undefined;
  /** The smallest load that does not. */
  readonly firstMissed: ReportLevel | undefined;
}

export type LimitVerdict = "met" | "missed" | "unknown";

const TERM_TITLES: Readonly<Record<SloTerm, string>> = { ttftMs: "TTFT", tpotMs: "TPOT", e2eMs: "E2E" };

/** Each limit on its own, and all of them together where there are several. */
export function limitsOf(slo: Slo): { title: string; terms: Slo }[] {
  const terms = (Object.keys(TERM_TITLES) as SloTerm[]).filter((term) => slo[term] !== undefined);
  const single = terms.map((term) => ({
    title: `${TERM_TITLES[term]} p95 ≤ ${slo[term]} ms`,
    terms: { [term]: slo[term] } as Slo,
  }));
  return terms.length < 2 ? single : [...single, { title: "all of them", terms: slo }];
}

/** The capacity of every arm under every limit. */
export function capacities(groups: readonly ArmAtLevel[], slo: Slo): Capacity[] {
  const byFleet = new Map<string, ArmAtLevel[]>();
  for (const group of groups) {
    const key = `${group.arm}|${group.level.workers ?? ""}`;
    byFleet.set(key, [...(byFleet.get(key) ?? []), group]);
  }
  return limitsOf(slo).flatMap((limit) =>
    Array.from(byFleet.values(), (fleet): Capacity => {
      const levels = fleet
        .toSorted((a, b) => compareLevels(a.level, b.level))
        .map((group) => ({ level: group.level, ...judgeLimit(group, limit.terms) }));
      return {
        arm: fleet[0].arm,
        workers: fleet[0].level.workers,
        limit,
        levels,
        largest: levels.findLast(({ verdict }) => verdict === "met")?.level,
        firstMissed: levels.find(({ verdict }) => verdict === "missed")?.level,
      };
    }),
  );
}

function judgeLimit({ latencies }: ArmAtLevel, terms: Slo): { verdict: LimitVerdict; p95: Reading } {
  let verdict: LimitVerdict = "met";
  let shown: Reading = { state: "unavailable" };
  for (const term of Object.keys(terms) as SloTerm[]) {
    const limit = terms[term];
    if (limit === undefined) continue;
    const p95 = latencies[term].offered.p95;
    if (shown.state === "unavailable") shown = p95;
    const one = within(p95, limit);
    if (one === "missed") return { verdict: "missed", p95 };
    if (one === "unknown") verdict = "unknown";
  }
  return { verdict, p95: shown };
}

function within(p95: Reading, limit: number): LimitVerdict {
  switch (p95.state) {
    case "ok":
      return p95.value <= limit ? "met" : "missed";
    case "between":
      return p95.high <= limit ? "met" : p95.low > limit ? "missed" : "unknown";
    case "not-reached":
      return "missed";
    case "too-few":
    case "unavailable":
      return "unknown";
  }
}
