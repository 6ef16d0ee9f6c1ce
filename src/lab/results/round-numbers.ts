// A nanosecond in milliseconds: the grain of all times, and more than any rate or share needs.
const DECIMALS = 1e6;

/** A copy with every number rounded to six decimals, which is what people can read and what equal runs agree on. */
export function roundNumbers<Value>(value: Value): Value {
  return rounded(value) as Value;
}

function rounded(value: unknown): unknown {
  if (typeof value === "number") return roundNumber(value);
  if (Array.isArray(value)) return value.map(rounded);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, rounded(inner)]));
}

function roundNumber(value: number): number {
  // Adding 0 turns -0, which JSON would not keep, into 0.
  return Number.isInteger(value) ? value + 0 : Math.round(value * DECIMALS) / DECIMALS + 0;
}
