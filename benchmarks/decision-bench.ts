import { POLICIES } from "../src/core/policy/registry.ts";
import type { DecisionRequest, DecisionTimes } from "./decision/measure.ts";
import { bestAndMedian, inFreshProcess } from "./fresh-process.ts";

export interface DecisionBenchOptions {
  readonly rounds: number;
  readonly progress: (line: string) => void;
}

const FLEETS = [8, 64, 256];
const DECISIONS = 20_000;

/** Variants timed besides every policy with its defaults. */
const VARIANTS: readonly { name: string; policy: string; parameters: Record<string, string | number> }[] = [
  { name: "kv-cost (dynamo form)", policy: "kv-cost", parameters: { form: "dynamo" } },
];

/** Time of a whole routing decision by fleet size and policy; policies take turns, each in fresh processes. */
export function benchDecision(options: DecisionBenchOptions): Record<string, unknown> {
  const subjects = [...POLICIES.map(({ name }) => ({ name, policy: name, parameters: {} })), ...VARIANTS];
  const counting: (readonly number[])[] = [];
  const byWorkers = FLEETS.map((workers) => {
    const rounds = new Map<string, (readonly number[])[]>(subjects.map(({ name }) => [name, []]));
    for (let round = 0; round < options.rounds; round++) {
      for (const { name, policy, parameters } of subjects) {
        const request: DecisionRequest = { workers, policy, parameters, decisions: DECISIONS };
        const times = inFreshProcess("./decision/measure.ts", request) as DecisionTimes;
        rounds.get(name)?.push(times.decisionsUs);
        counting.push(times.countingUs);
      }
      options.progress(`${workers} workers, round ${round + 1} of ${options.rounds}`);
    }
    const policies = Object.fromEntries(subjects.map(({ name }) => [name, summary(rounds.get(name) ?? [])]));
    return { workers, policies };
  });
  return {
    bench: "decision",
    promptTokens: 8_000,
    blockTokens: 64,
    rounds: options.rounds,
    method:
      "wall time from tokens to placement: hash, match, choose, reserve, expect and full record; 20,000 decisions after 3,000 " +
      "to warm up, in fresh processes; lowest of the rounds, with the medians of p99 and p99.9 beside; own: percentiles of each " +
      "decision's median over the rounds, in all of which it does the same work, so without what only interrupted it; " +
      "counting: the same percentiles of a loop without memory, timed between decisions, median of all processes",
    counting: medians(counting.map(percentiles)),
    byWorkers,
  };
}

interface Percentiles {
  readonly p50Us: number;
  readonly p99Us: number;
  readonly p999Us: number;
}

function summary(rounds: readonly (readonly number[])[]): Record<string, number> {
  const each = rounds.map(percentiles);
  const lowest = (key: keyof Percentiles): number => Math.min(...each.map((round) => round[key]));
  const median = medians(each);
  const own = percentiles(rounds[0].map((_, decision) => medianOf(rounds.map((round) => round[decision]))));
  return {
    p50Us: lowest("p50Us"),
    p99Us: lowest("p99Us"),
    p999Us: lowest("p999Us"),
    p99UsMedian: median.p99Us,
    p999UsMedian: median.p999Us,
    ownP99Us: own.p99Us,
    ownP999Us: own.p999Us,
  };
}

function percentiles(times: readonly number[]): Percentiles {
  const sorted = Float64Array.from(times).sort();
  const at = (share: number): number => sorted[Math.floor(share * sorted.length)];
  return { p50Us: at(0.5), p99Us: at(0.99), p999Us: at(0.999) };
}

function medians(each: readonly Percentiles[]): Percentiles {
  const of = (key: keyof Percentiles): number => medianOf(each.map((one) => one[key]));
  return { p50Us: of("p50Us"), p99Us: of("p99Us"), p999Us: of("p999Us") };
}

function medianOf(values: readonly number[]): number {
  return bestAndMedian(values, "lowest").median;
}
