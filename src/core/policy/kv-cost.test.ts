import { describe, expect, it } from "vitest";
import { Rng } from "../rng.ts";
import { candidateView, type CandidateRow } from "./candidate-view.ts";
import { kvCost } from "./kv-cost.ts";
import type { PolicyParameters } from "./types.ts";

const MISSION_WORKERS = [
  { name: "worker-1", cachedBlocks: 20, activeBlocks: 10 },
  { name: "worker-2", cachedBlocks: 75, activeBlocks: 5 },
  { name: "worker-3", cachedBlocks: 10, activeBlocks: 9 },
];

function costs(parameters: PolicyParameters, rows: readonly CandidateRow[], promptTokens?: number): number[] {
  const request = { promptBlocks: 100, ...(promptTokens === undefined ? {} : { promptTokens }) };
  return kvCost
    .create(parameters)
    .explain(candidateView(request, rows))
    .candidates.map((candidate) => candidate.cost);
}

function shares(parameters: PolicyParameters, rows: readonly CandidateRow[], decisions: number): number[] {
  const policy = kvCost.create(parameters);
  const rng = new Rng(11);
  const visits = rows.map(() => 0);
  for (let n = 0; n < decisions; n++) {
    const choice = policy.choose(candidateView({ promptBlocks: 100, chance: rng.u32() }, rows));
    if (choice.kind === "place") visits[choice.replica]++;
  }
  return visits.map((count) => count / decisions);
}

describe("kv-cost in the mission form", () => {
  it("gives 90, 30 and 99 on the mission's example and chooses worker 2", () => {
    const policy = kvCost.create({});
    const view = candidateView({ promptBlocks: 100 }, MISSION_WORKERS);
    const explained = policy.explain(view).candidates;
    expect(explained.map(({ cost }) => cost)).toEqual([90, 30, 99]);
    expect(explained[1].terms).toEqual([
      { name: "prefill", value: 25 },
      { name: "decode", value: 5 },
    ]);
    expect(policy.choose(view)).toEqual({ kind: "place", replica: 1, runnerUp: 0, margin: 60, tied: 1 });
  });

  it("weighs prefill against decode by overlap_score_weight", () => {
    expect(costs({ overlap_score_weight: 2 }, MISSION_WORKERS)).toEqual([170, 55, 189]);
    expect(costs({ overlap_score_weight: 0 }, MISSION_WORKERS)).toEqual([10, 5, 9]);
  });

  it("looks at neither pending prefill nor slower tiers", () => {
    const elsewhere = { pendingPrefillTokens: 9999, hostBlocks: 5, inFlight: 7 };
    const busy = MISSION_WORKERS.map((row) => Object.assign({}, row, elsewhere));
    expect(costs({}, busy)).toEqual([90, 30, 99]);
  });

  it("refuses a knob that only the dynamo form has", () => {
    expect(() => kvCost.create({ prefill_load_scale: 4 })).toThrow(/prefill_load_scale has no effect/);
    expect(() => kvCost.create({ prefill_load_scale: 1 })).not.toThrow();
  });
});

describe("kv-cost in the dynamo form", () => {
  it("adds pending prefill and the request's own decode blocks, and credits slower tiers", () => {
    const row = {
      name: "a",
      pendingPrefillTokens: 640,
      cachedBlocks: 40,
      hostBlocks: 20,
      diskBlocks: 8,
      activeBlocks: 50,
      activePrefixBlocks: 30,
      inFlight: 3,
    };
    // (640 + 6,432) / 64 = 110.5 blocks; credits 40 + 15 + 2 = 57; decode 50 + (100 − 30) = 120.
    expect(costs({ form: "dynamo" }, [row], 6432)).toEqual([53.5 + 120]);
    const knobs = {
      form: "dynamo",
      prefill_load_scale: 4,
      overlap_score_weight: 0.5,
      decode_active_request_weight: 64,
    };
    expect(costs(knobs, [row], 6432)).toEqual([2 * 53.5 + 120 + 64 * 3]);
  });

  it("lets device credit decay with pending prefill above the least of the candidates", () => {
    const rows = [
      { name: "a", pendingPrefillTokens: 6400 + 1280, cachedBlocks: 80, hostBlocks: 4 },
      { name: "b", pendingPrefillTokens: 1280 },
    ];
    // a: one request's worth of excess halves its credit: 220 − 80/2 − 3 = 177, plus 100 own decode blocks.
    const knobs = { form: "dynamo", overlap_score_credit_decay: 1 };
    expect(costs(knobs, rows, 6400)).toEqual([177 + 100, 120 + 100]);
  });

  it("never pays out a credit beyond the work there is", () => {
    const rows = [{ name: "a", cachedBlocks: 90, activeBlocks: 7 }];
    expect(costs({ form: "dynamo", overlap_score_credit: 2 }, rows)).toEqual([107]);
  });

  it("breaks ties at random and not in turn", () => {
    const rows = ["a", "b", "c", "d"].map((name, i) => ({ name, lastChosen: i }));
    for (const share of shares({ form: "dynamo" }, rows, 20_000)) expect(Math.abs(share - 0.25)).toBeLessThan(0.015);
  });

  it("asks for the prefixes of active requests, which the mission form does not need", () => {
    expect(kvCost.create({ form: "dynamo" }).usesActivePrefix).toBe(true);
    expect(kvCost.create({ form: "dynamo", router_temperature: 1 }).usesActivePrefix).toBe(true);
    expect(kvCost.create({}).usesActivePrefix).toBe(false);
  });
});

describe("router_temperature", () => {
  it("samples with the probabilities of a softmax over costs divided by their range", () => {
    const rows = [0, 10, 25, 60, 100].map((activeBlocks, i) => ({ name: `worker ${i}`, activeBlocks }));
    for (const temperature of [0.2, 1]) {
      const weights = rows.map(({ activeBlocks }) => Math.exp(-activeBlocks / (100 * temperature)));
      const total = weights.reduce((sum, weight) => sum + weight, 0);
      const observed = shares({ router_temperature: temperature }, rows, 60_000);
      // Five standard deviations of a share near one half.
      for (const [i, share] of observed.entries()) expect(Math.abs(share - weights[i] / total)).toBeLessThan(0.0103);
    }
  });

  it("chooses uniformly among equal costs", () => {
    const rows = ["a", "b", "c", "d"].map((name, i) => ({ name, lastChosen: i }));
    for (const share of shares({ router_temperature: 0.1 }, rows, 20_000))
      expect(Math.abs(share - 0.25)).toBeLessThan(0.015);
  });
});
