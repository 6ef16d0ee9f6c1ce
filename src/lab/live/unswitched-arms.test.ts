import { describe, expect, test } from "vitest";
import { readExperiment } from "../experiment/read.ts";
import type { Experiment } from "../experiment/types.ts";
import { unswitchedArms } from "./unswitched-arms.ts";

const URL = "http://endpoint";
const FLEET = { model: "llama-3.1-8b", gpu: "h100", workers: 2, engine: { profile: "vllm" }, blockTokens: 64 };
const TWO_POLICIES = [
  { name: "rr", policy: "round-robin" },
  { name: "kv", policy: "kv-cost" },
];

const SPELT_OUT = { policy: "kv-cost", parameters: { overlap_score_weight: 1 }, fleet: { tensorParallel: 1 } };
const SCHEDULE = { workload: { trace: { files: ["t"] } }, load: { speed: [1] } };

function sameButForJitter(): object[] {
  return [
    { name: "a", policy: "round-robin" },
    { name: "b", policy: "round-robin", jitter: true },
  ];
}

function otherFleet(): object[] {
  return [
    { name: "a", policy: "kv-cost" },
    { name: "b", policy: "kv-cost", fleet: { tensorParallel: 2 } },
  ];
}

function experimentWith(changes: object): Experiment {
  const { experiment, problems } = readExperiment({
    name: "arms",
    fleet: FLEET,
    workload: { conversations: {} },
    load: { concurrency: [10] },
    arms: TWO_POLICIES,
    windowSeconds: 10,
    ...changes,
  });
  if (experiment === undefined) throw new Error(problems.join("\n"));
  return experiment;
}

const complaint = (changes: object): string | undefined => unswitchedArms(experimentWith(changes), URL);

describe("arms on an endpoint that nobody switches", () => {
  test("are refused where their policies differ", () => {
    expect(complaint({})).toBe(
      "nothing switches http://endpoint between the arms rr and kv; give live.adminUrl (of a Warmpath gateway) or a hook before_arm, or one arm with --arms",
    );
  });

  test.each([
    [
      "parameters",
      [
        { name: "a", policy: "kv-cost" },
        { ...TWO_POLICIES[1], parameters: { overlap_score_weight: 2 } },
      ],
    ],
    ["admissions", [TWO_POLICIES[1], { name: "b", policy: "kv-cost", admission: { mode: "shed" } }]],
    ["fleets", [TWO_POLICIES[1], { name: "b", policy: "kv-cost", fleet: { tensorParallel: 2 } }]],
  ])("are refused where their %s differ", (_, arms) => {
    expect(complaint({ arms })).toMatch(/^nothing switches http:\/\/endpoint between the arms/);
  });

  test.each([
    ["there is one", { arms: TWO_POLICIES.slice(0, 1) }],
    ["they differ in what the client does", { arms: sameButForJitter(), ...SCHEDULE }],
    ["one of them spells out a default", { arms: [TWO_POLICIES[1], { name: "b", ...SPELT_OUT }] }],
    ["an admin API switches policies", { live: { adminUrl: "http://admin" } }],
    ["a hook switches them", { live: { hooks: { before_arm: "true" } } }],
    ["a hook makes other fleets", { arms: otherFleet(), live: { hooks: { before_arm: "true" } } }],
  ])("are run where %s", (_, changes) => {
    expect(complaint(changes)).toBeUndefined();
  });

  test("are refused where an admin API would have to change the engines", () => {
    expect(complaint({ arms: otherFleet(), live: { adminUrl: "http://admin" } })).toContain(
      "live.adminUrl switches policies, and their fleets differ",
    );
  });
});

describe("numbers of workers on an endpoint", () => {
  const arms = TWO_POLICIES.slice(0, 1);
  const fleet = { ...FLEET, workers: [2, 4] };

  test("are refused where nobody counts them", () => {
    expect(complaint({ arms, fleet })).toMatch(/^nothing tells how many workers .* and the levels have 2, 4; /);
  });

  test.each([
    ["an admin API", { adminUrl: "http://admin" }],
    ["a list", { workers: ["http://a"] }],
    ["a hook", { hooks: { list_workers: "true" } }],
  ])("are waited for where %s counts them", (_, live) => {
    expect(complaint({ arms, fleet, live })).toBeUndefined();
  });
});
