import type { MetricObjectWithValues, MetricValue, MetricValueWithName } from "prom-client";
import type { GapCounts } from "../decider.ts";

interface Series {
  readonly counts: Float64Array;
  sumSeconds: number;
}

/** A histogram that takes whole counts per bucket, by policy; prom-client's own takes one value at a time. */
export class CountedHistogram {
  readonly name: string;
  readonly help: string;
  readonly type = "histogram";
  readonly aggregator = "sum";
  readonly #bounds: readonly number[];
  readonly #series = new Map<string, Series>();

  constructor(name: string, help: string, bounds: readonly number[]) {
    this.name = name;
    this.help = help;
    this.#bounds = bounds;
  }

  add(policy: string, { counts, sumSeconds }: GapCounts): void {
    let series = this.#series.get(policy);
    if (series === undefined) {
      series = { counts: new Float64Array(this.#bounds.length + 1), sumSeconds: 0 };
      this.#series.set(policy, series);
    }
    for (let bucket = 0; bucket < counts.length; bucket++) series.counts[bucket] += counts[bucket];
    series.sumSeconds += sumSeconds;
  }

  /** What the registry asks of a metric. */
  get(): Promise<MetricObjectWithValues<MetricValue<string>>> {
    const values: MetricValueWithName<string>[] = [];
    for (const [policy, { counts, sumSeconds }] of this.#series) {
      let below = 0;
      for (let bucket = 0; bucket < counts.length; bucket++) {
        below += counts[bucket];
        const le = bucket < this.#bounds.length ? this.#bounds[bucket] : "+Inf";
        values.push({ metricName: `${this.name}_bucket`, labels: { le, policy }, value: below });
      }
      values.push({ metricName: `${this.name}_sum`, labels: { policy }, value: sumSeconds });
      values.push({ metricName: `${this.name}_count`, labels: { policy }, value: below });
    }
    const { name, help, aggregator } = this;
    // The types know the kinds of metrics only as an enum that is erased.
    return Promise.resolve({ name, help, aggregator, type: this.type, values } as never);
  }

  reset(): void {
    this.#series.clear();
  }
}
