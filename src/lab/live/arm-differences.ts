import type { ArmDifference, ArmFacts, Comparability } from "../results/types.ts";

/** Arms are meant to differ in their policy; anything else must be declared. */
const POLICY_DIFFERENCE: readonly string[] = ["policy", "policy.*"];

const NOT_SET = "not set";

/** Everything that arms have otherwise than the first of them, and whether that leaves them comparable. */
export function compareArms(arms: readonly ArmFacts[], alsoDeclared: readonly string[] = []): Comparability {
  const declared = [...POLICY_DIFFERENCE, ...alsoDeclared];
  const isDeclared = patternsOf(declared);
  const differences = arms.slice(1).flatMap((arm) => differencesOf(arms[0], arm, isDeclared));
  const reasons = differences
    .filter((difference) => !difference.isDeclared)
    .map(({ arm, against, setting, value, againstValue }) => {
      return `${arm} differs from ${against} in ${setting}, which is not declared: ${value} instead of ${againstValue}`;
    });
  return { verdict: reasons.length === 0 ? "comparable" : "not-comparable", declared, reasons, differences };
}

/** A configuration made flat: `{a: {b: [1]}}` is `a.b.0 = 1`; what has a name in a list, such as a variable, goes by it. */
export function flatSettings(configuration: unknown, within = ""): Record<string, string> {
  if (typeof configuration !== "object" || configuration === null) {
    return { [within]: typeof configuration === "string" ? configuration : JSON.stringify(configuration ?? null) };
  }
  const inner = Object.entries(configuration).map(([place, value]: [string, unknown]) => {
    const key = Array.isArray(configuration) ? (nameOf(value) ?? place) : place;
    return flatSettings(value, within === "" ? key : `${within}.${key}`);
  });
  return Object.assign({}, ...inner) as Record<string, string>;
}

function nameOf(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null || !("name" in value)) return undefined;
  return typeof value.name === "string" ? value.name : undefined;
}

/** Differences for a person, one line each. */
export function differenceLines({ differences }: Comparability): string[] {
  return differences.map(({ arm, against, setting, value, againstValue, isDeclared }) => {
    return `${arm} against ${against}: ${setting} ${value} instead of ${againstValue}${isDeclared ? "" : "  NOT DECLARED"}`;
  });
}

function differencesOf(first: ArmFacts, arm: ArmFacts, isDeclared: (setting: string) => boolean): ArmDifference[] {
  const names = new Set([...Object.keys(first.settings), ...Object.keys(arm.settings)]);
  return [...names].toSorted().flatMap((setting) => {
    const value = arm.settings[setting] ?? NOT_SET;
    const againstValue = first.settings[setting] ?? NOT_SET;
    if (value === againstValue) return [];
    return { arm: arm.arm, against: first.arm, setting, value, againstValue, isDeclared: isDeclared(setting) };
  });
}

/** Whether a setting is one of those that are named; a `*` stands for anything. */
function patternsOf(declared: readonly string[]): (setting: string) => boolean {
  const patterns = declared.map((name) => {
    const literal = name.split("*").map((part) => part.replaceAll(/[.+?^${}()|[\]\\]/g, "\\$&"));
    return new RegExp(`^${literal.join(".*")}$`);
  });
  return (setting) => patterns.some((pattern) => pattern.test(setting));
}
