import { describe, expect, it } from "vitest";
import { createPolicy, POLICIES } from "../../src/core/policy/registry.ts";
import { describePolicyContract, type PolicyVariant } from "./policy.contract.ts";

type Promises = Pick<PolicyVariant, "tieBreak" | "equalFleet">;

const IN_TURN: Promises = { tieBreak: "rotation", equalFleet: "in turn" };
const SPREAD: Promises = { tieBreak: "rotation", equalFleet: "by chance" };
const DRAWN: Promises = { tieBreak: "draw", equalFleet: "by chance" };

/** Every fraction of Dynamo's cost function at once: its agentic preset, with decay and temperature to boot. */
const ALL_KNOBS = {
  form: "dynamo",
  overlap_score_weight: 1.5,
  overlap_score_credit: 2,
  overlap_score_credit_decay: 1,
  prefill_load_scale: 4,
  decode_active_request_weight: 64,
};

const VARIANTS: readonly (readonly [string, Record<string, number | string>, Promises])[] = [
  ["round-robin", {}, IN_TURN],
  ["random", {}, SPREAD],
  ["least-loaded", {}, IN_TURN],
  ["power-of-two", {}, SPREAD],
  ["session-affinity", {}, SPREAD],
  ["session-affinity", { load_factor: 1 }, SPREAD],
  ["kv-cost", {}, IN_TURN],
  ["kv-cost", { overlap_score_weight: 0.3 }, IN_TURN],
  ["kv-cost", { router_temperature: 0.5 }, DRAWN],
  ["kv-cost", { form: "dynamo" }, DRAWN],
  ["kv-cost", ALL_KNOBS, DRAWN],
  ["kv-cost", { ...ALL_KNOBS, router_temperature: 0.2 }, DRAWN],
  ["load-only", {}, IN_TURN],
  ["load-only", { form: "dynamo" }, DRAWN],
  ["load-only", { form: "dynamo", router_temperature: 1 }, DRAWN],
  ["cache-threshold", {}, IN_TURN],
  ["cache-threshold", { cache_threshold: 0, balance_abs_threshold: 200 }, IN_TURN],
  ["product", {}, IN_TURN],
  ["prefix-score", {}, IN_TURN],
  ["warmpath", {}, IN_TURN],
  ["warmpath", { calmUrgency: 1, busyUrgency: 1, expectedCredit: 0, speedPriorFactor: 2 }, IN_TURN],
];

describe("policy contract", () => {
  it("covers every registered policy", () => {
    expect(new Set(VARIANTS.map(([name]) => name))).toEqual(new Set(POLICIES.map((policy) => policy.name)));
  });

  it("makes the same policy again from the parameters a policy reports", () => {
    for (const [name, parameters] of VARIANTS) {
      const policy = createPolicy(name, parameters);
      expect(policy.parameters).toMatchObject(parameters);
      expect(createPolicy(name, policy.parameters).parameters).toEqual(policy.parameters);
    }
  });

  for (const [name, parameters, promises] of VARIANTS) {
    const knobs = Object.entries(parameters).map(([knob, value]) => `${knob} ${value}`);
    const title = knobs.length === 0 ? name : `${name} with ${knobs.join(", ")}`;
    describePolicyContract({ title, create: () => createPolicy(name, parameters), ...promises });
  }
});
