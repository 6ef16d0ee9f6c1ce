import { WarmpathError } from "../errors.ts";
import type { ParameterSpec, PolicyParameters } from "./types.ts";

/**
 * Checks what a user gave against the knobs a policy has, and fills in the defaults. Every mistake is named, because a
 * misspelt knob that is silently ignored turns an experiment into a repetition of the default.
 */
export function resolveParameters(
  policy: string,
  specs: Readonly<Record<string, ParameterSpec>>,
  given: Readonly<Record<string, unknown>>,
): PolicyParameters {
  for (const name of Object.keys(given)) {
    if (Object.hasOwn(specs, name)) continue;
    const known = Object.keys(specs).join(", ") || "none";
    throw invalid(policy, name, `is not a parameter of this policy; known: ${known}`);
  }
  const resolved: Record<string, number | string> = {};
  for (const [name, spec] of Object.entries(specs)) {
    const value = Object.hasOwn(given, name) ? given[name] : undefined;
    resolved[name] = value === undefined ? spec.default : checked(policy, name, spec, value);
  }
  return Object.freeze(resolved);
}

/** Reads a resolved knob that its spec declares as a number. */
export function numberParameter(parameters: PolicyParameters, name: string): number {
  const value = parameters[name];
  if (typeof value === "number") return value;
  throw new WarmpathError("WP_INVALID_STATE", `parameter ${name} was not resolved to a number`);
}

/** The error for a knob of a policy that cannot be used as given. */
export function invalid(policy: string, parameter: string, problem: string): WarmpathError {
  return new WarmpathError("WP_INVALID_INPUT", `policy ${policy}: parameter ${parameter} ${problem}`);
}

function checked(policy: string, name: string, spec: ParameterSpec, value: unknown): number | string {
  const got = `got ${typeof value === "number" ? String(value) : (JSON.stringify(value) ?? typeof value)}`;
  if (spec.kind === "choice") {
    if (typeof value === "string" && spec.choices.includes(value)) return value;
    throw invalid(policy, name, `must be one of ${spec.choices.join(", ")}; ${got}`);
  }
  if (typeof value === "number" && value >= spec.minimum && value <= spec.maximum) return value;
  throw invalid(policy, name, `must be a number from ${spec.minimum} to ${spec.maximum}; ${got}`);
}
