import { field } from "../openai-usage.ts";

/** The percentiles that AIPerf writes of a distribution. */
export const AIPERF_PERCENTILES = ["p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99"] as const;

/** What AIPerf writes of a metric; `unit` is authoritative, and what it could not compute is absent. */
export interface AiperfMetric {
  readonly unit: string;
  readonly avg?: number | undefined;
  readonly min?: number | undefined;
  readonly max?: number | undefined;
  readonly std?: number | undefined;
  /** From schema 1.1 on. */
  readonly count?: number | undefined;
  readonly sum?: number | undefined;
  /** Share of the sample and value, ascending. */
  readonly percentiles: readonly (readonly [share: number, value: number])[];
}

/** Milliseconds in one of each unit of time. */
const MS_PER_UNIT: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1000,
  sec: 1000,
  seconds: 1000,
};

/** Reads one metric; undefined for anything that is none, null of older files included. */
export function parseAiperfMetric(value: unknown): AiperfMetric | undefined {
  const unit = field(value, "unit");
  if (typeof unit !== "string") return undefined;
  return {
    unit,
    avg: numberIn(value, "avg"),
    min: numberIn(value, "min"),
    max: numberIn(value, "max"),
    std: numberIn(value, "std"),
    count: numberIn(value, "count"),
    sum: numberIn(value, "sum"),
    percentiles: AIPERF_PERCENTILES.flatMap((name) => {
      const at = numberIn(value, name);
      return at === undefined ? [] : [[Number(name.slice(1)) / 100, at] as const];
    }),
  };
}

/** A metric as AIPerf writes it; a scalar has its unit and `avg` alone. */
export function encodeAiperfMetric(metric: AiperfMetric): Record<string, string | number> {
  const { unit, avg, percentiles, min, max, std, count, sum } = metric;
  const entries: [string, string | number | undefined][] = [
    ["unit", unit],
    ["avg", avg],
    ...percentiles.map(([share, value]): [string, number] => [`p${Math.round(share * 100)}`, value]),
    ["min", min],
    ["max", max],
    ["std", std],
    ["count", count],
    ["sum", sum],
  ];
  return Object.fromEntries(entries.filter((entry): entry is [string, string | number] => entry[1] !== undefined));
}

/** The metric in milliseconds; undefined where its unit is no time. */
export function inMilliseconds(metric: AiperfMetric): AiperfMetric | undefined {
  const factor = MS_PER_UNIT[metric.unit];
  if (factor === undefined) return undefined;
  const scaled = (value: number | undefined): number | undefined => (value === undefined ? undefined : value * factor);
  return {
    unit: "ms",
    avg: scaled(metric.avg),
    min: scaled(metric.min),
    max: scaled(metric.max),
    std: scaled(metric.std),
    count: metric.count,
    sum: scaled(metric.sum),
    percentiles: metric.percentiles.map(([share, value]) => [share, value * factor] as const),
  };
}

/** A finite number of an object that came from outside. */
export function numberIn(value: unknown, name: string): number | undefined {
  const found = field(value, name);
  return typeof found === "number" && Number.isFinite(found) ? found : undefined;
}

/** A text of an object that came from outside. */
export function textIn(value: unknown, name: string): string | undefined {
  const found = field(value, name);
  return typeof found === "string" ? found : undefined;
}
