import { describe, expect, it } from "vitest";
import { WarmpathError } from "../errors.ts";
import { createPolicy, POLICIES } from "./registry.ts";

function failure(action: () => unknown): WarmpathError {
  try {
    action();
  } catch (error) {
    if (WarmpathError.isInstance(error)) return error;
    throw error;
  }
  throw new Error("expected an error");
}

describe("createPolicy", () => {
  it("makes every listed policy with its defaults", () => {
    for (const definition of POLICIES) {
      const policy = createPolicy(definition.name);
      expect(policy.name).toBe(definition.name);
      for (const [name, spec] of Object.entries(definition.parameters)) {
        expect(policy.parameters[name]).toBe(spec.default);
      }
    }
    expect(new Set(POLICIES.map(({ name }) => name)).size).toBe(POLICIES.length);
  });

  it("lists the known policies when asked for an unknown one", () => {
    const error = failure(() => createPolicy("fastest"));
    expect(error.code).toBe("WP_UNKNOWN_POLICY");
    for (const { name } of POLICIES) expect(error.message).toContain(name);
  });

  it.each([
    ["an unknown name", { overlap_weight: 1 }, /overlap_weight is not a parameter.*overlap_score_weight/],
    ["an inherited name", { constructor: 1 }, /constructor is not a parameter/],
    ["a number as text", { overlap_score_weight: "2" }, /overlap_score_weight must be a number from 0.*got "2"/],
    ["a number out of range", { router_temperature: -0.1 }, /router_temperature must be a number from 0.*got -0.1/],
    ["not a number", { overlap_score_weight: Number.NaN }, /overlap_score_weight .*got NaN/],
    ["null", { overlap_score_weight: null }, /overlap_score_weight .*got null/],
    ["an unknown choice", { form: "Dynamo" }, /form must be one of mission, dynamo; got "Dynamo"/],
  ])("names the parameter given %s", (_, parameters, message) => {
    const error = failure(() => createPolicy("kv-cost", parameters));
    expect(error.code).toBe("WP_INVALID_INPUT");
    expect(error.message).toMatch(message);
  });

  it("takes an undefined parameter as not given", () => {
    expect(createPolicy("kv-cost", { form: undefined }).parameters["form"]).toBe("mission");
  });
});
