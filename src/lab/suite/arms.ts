import { WarmpathError } from "../../core/errors.ts";
import { createPolicy, POLICIES } from "../../core/policy/registry.ts";
import type { Suite, SuiteArm, SuiteConditions } from "./types.ts";

/** The policy that all others are asked not to be worse than. */
export const REFERENCE = "round-robin";
/** Policies are judged by where they place, so nobody stands before the engines unless that is asked for. */
export const USUAL_CONDITIONS: SuiteConditions = { admission: "engine", kvEvents: true };

/** The policy that is judged unless another is named. */
export const DEFAULT_CANDIDATE = "warmpath";

/** What the league is asked to have besides, or instead. */
export interface ArmChoice {
  /** Names of policies or arms; all unless told. The reference is always among them. */
  readonly policies?: readonly string[] | undefined;
  /** Knobs that replace defaults: `policy.knob=value`. */
  readonly set?: readonly string[] | undefined;
  /** Further arms: `policy.knob=value,knob=value`. */
  readonly also?: readonly string[] | undefined;
}

/** The arms of a suite: every policy as it comes, rivals at their best, and what else is asked for. */
export function suiteArms(suite: Suite, tuned: readonly SuiteArm[], choice: ArmChoice): SuiteArm[] {
  const names = suite.policies ?? POLICIES.map(({ name }) => name);
  const changes = (choice.set ?? []).map(readKnobs);
  const standard = names.map((policy): SuiteArm => {
    const own = changes.filter((change) => change.policy === policy).map(({ knobs }) => knobs);
    return armOf(policy, policy, Object.assign({}, ...own) as Record<string, number | string>);
  });
  for (const { policy } of changes) requireKnown(policy, names);
  const all = [...standard, ...tuned];
  const { policies } = choice;
  for (const wanted of policies ?? [])
    requireKnown(
      wanted,
      all.flatMap(({ name, policy }) => [name, policy]),
    );
  const chosen = all.filter(
    ({ name, policy }) =>
      policies === undefined || name === REFERENCE || policies.includes(name) || policies.includes(policy),
  );
  const also = (choice.also ?? []).map((written) => {
    const { policy, knobs } = readKnobs(written);
    return armOf(written.replace(".", " "), policy, knobs);
  });
  const arms = [...chosen, ...also];
  if (!arms.some(({ name }) => name === REFERENCE)) arms.unshift(armOf(REFERENCE, REFERENCE, {}));
  return arms;
}

/** The arm that is judged: the one named, else the default where there is one, else `product`. */
export function candidateArm(arms: readonly SuiteArm[], name: string | undefined): string {
  const names = arms.map((arm) => arm.name);
  if (name !== undefined) return requireKnown(name, names);
  return [DEFAULT_CANDIDATE, "product"].find((one) => names.includes(one)) ?? names[0];
}

function armOf(name: string, policy: string, knobs: Readonly<Record<string, number | string>>): SuiteArm {
  return { name, policy, parameters: createPolicy(policy, knobs).parameters };
}

function readKnobs(written: string): { policy: string; knobs: Record<string, number | string> } {
  const dot = written.indexOf(".");
  const pairs = written
    .slice(dot + 1)
    .split(",")
    .map((pair) => pair.split("="));
  if (dot < 1 || pairs.some((pair) => pair.length !== 2 || pair[0] === "" || pair[1] === "")) {
    throw refusal(`"${written}" must be written as policy.knob=value, or policy.knob=value,knob=value`);
  }
  const knobs = pairs.map(([knob, value]) => [knob, Number.isNaN(Number(value)) ? value : Number(value)]);
  return { policy: written.slice(0, dot), knobs: Object.fromEntries(knobs) as Record<string, number | string> };
}

function requireKnown(name: string, known: readonly string[]): string {
  if (known.includes(name)) return name;
  throw refusal(`"${name}" is not in the suite; it has ${[...new Set(known)].join(", ")}`);
}

function refusal(message: string): WarmpathError {
  return new WarmpathError("WP_INVALID_INPUT", message);
}
