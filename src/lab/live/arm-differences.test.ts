import { describe, expect, test } from "vitest";
import { compareArms, differenceLines, flatSettings } from "./arm-differences.ts";

const arm = (name: string, configuration: object): { arm: string; checks: []; settings: Record<string, string> } => ({
  arm: name,
  checks: [],
  settings: flatSettings(configuration),
});

describe("what arms differ in", () => {
  test("may be the policy and its knobs", () => {
    const found = compareArms([
      arm("a", { policy: { name: "round-robin" } }),
      arm("b", { policy: { name: "kv-cost", overlap_score_weight: 2 } }),
    ]);
    expect(found.verdict).toBe("comparable");
    expect(differenceLines(found)).toEqual([
      "b against a: policy.name kv-cost instead of round-robin",
      "b against a: policy.overlap_score_weight 2 instead of not set",
    ]);
  });

  test("may be nothing else unless it is declared", () => {
    const arms = [arm("a", { admission: { mode: "engine" } }), arm("b", { admission: { mode: "shed" } })];
    const found = compareArms(arms);
    expect(found.verdict).toBe("not-comparable");
    expect(found.reasons).toEqual([
      "b differs from a in admission.mode, which is not declared: shed instead of engine",
    ]);
    expect(differenceLines(found)[0]).toContain("NOT DECLARED");
    expect(compareArms(arms, ["admission.*"]).verdict).toBe("comparable");
    expect(compareArms(arms, ["admission"]).verdict).toBe("not-comparable");
  });

  test("is found by name in lists such as a container's variables", () => {
    const spec = (mode: string): object => ({
      envs: [
        { name: "HOME", value: "/" },
        { name: "DYN_ROUTER_MODE", value: mode },
      ],
    });
    const found = compareArms([arm("a", spec("kv")), arm("b", spec("round-robin"))], ["*DYN_ROUTER_MODE.value"]);
    expect(found).toMatchObject({ verdict: "comparable", differences: [{ setting: "envs.DYN_ROUTER_MODE.value" }] });
  });
});
