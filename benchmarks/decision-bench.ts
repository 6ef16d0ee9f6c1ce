import { POLICIES } from "../src/core/policy/registry.ts";
import type { DecisionRequest, DecisionResult } from "./decision/measure.ts";
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
  const byWorkers = FLEETS.map((workers) => {
    const results = new Map<string, DecisionResult[]>(subjects.map(({ name }) => [name, []]));
    for (let round = 0; round < options.rounds; round++) {
      for (const { name, policy, parameters } of subjects) {
        const request: DecisionRequest = { workers, policy, parameters, decisions: DECISIONS };
        results.get(name)?.push(inFreshProcess("./decision/measure.ts", request) as DecisionResult);
      }
      options.progress(`${workers} workers, round ${round + 1} of ${options.rounds}`);
    }
    const policies = Object.fromEntries(subjects.map(({ name }) => [name, summary(results.get(name) ?? [])]));
    return { workers, policies };
  });
  return {
    bench: "decision",
    promptTokens: 8_000,
    blockTokens: 64,
    rounds: options.rounds,
    method:
      "wall time from tokens to placement: hash, match, choose, reserve, expect and full record; 20,000 decisions after 3,000 " +
      "to warm up, in fresh processes; lowest of the rounds, with the medians of p99 and p99.9 beside",
    byWorkers,
  };
}

function summary(rounds: readonly DecisionResult[]): DecisionResult & { p99UsMedian: number; p999UsMedian: number } {
  const of = (key: keyof DecisionResult): { best: number; median: number } =>
    bestAndMedian(
      rounds.map((round) => round[key]),
      "lowest",
    );
  return {
    p50Us: of("p50Us").best,
    p99Us: of("p99Us").best,
    p999Us: of("p999Us").best,
    p99UsMedian: of("p99Us").median,
    p999UsMedian: of("p999Us").median,
  };
}
