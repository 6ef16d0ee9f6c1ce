import type { MetricValueWithName } from "prom-client";
import type { GapCounts } from "../decider.ts";
import { bucketOf } from "./buckets.ts";
import { LabelledSeries, type ReadableMetric } from "./labelled-series.ts";

interface Series {
  readonly counts: Float64Array;
  sumSeconds: number;
}

/** A histogram that takes values one at a time or whole counts per bucket. */
export class CountedHistogram implements ReadableMetric {
  readonly name: string;
  readonly help: string;
  readonly type = "histogram";
  readonly #bounds: readonly number[];
  readonly #series: LabelledSeries<Series>;

  constructor(name: string, help: string, bounds: readonly number[], labelNames: readonly string[]) {
    this.name = name;
    this.help = help;
    this.#bounds = bounds;
    this.#series = new LabelledSeries(labelNames, () => ({
      counts: new Float64Array(bounds.length + 1),
      sumSeconds: 0,
    }));
  }

  observe(seconds: number, label: string, ...labels: readonly string[]): void {
    const series = this.#series.of(label, ...labels);
    series.counts[bucketOf(this.#bounds, seconds)] += 1;
    series.sumSeconds += seconds;
  }

  /** Takes what was counted elsewhere into buckets of the same bounds. */
  add({ counts, sumSeconds }: GapCounts, label: string): void {
    const series = this.#series.of(label);
    for (let bucket = 0; bucket < counts.length; bucket++) series.counts[bucket] += counts[bucket];
    series.sumSeconds += sumSeconds;
  }

  values(): MetricValueWithName<string>[] {
    const values: MetricValueWithName<string>[] = [];
    for (const [labels, { counts, sumSeconds }] of this.#series.entries()) {
      let below = 0;
      for (let bucket = 0; bucket < counts.length; bucket++) {
        below += counts[bucket];
        const le = bucket < this.#bounds.length ? this.#bounds[bucket] : "+Inf";
        values.push({ metricName: `${this.name}_bucket`, labels: { le, ...labels }, value: below });
      }
      values.push({ metricName: `${this.name}_sum`, labels, value: sumSeconds });
      values.push({ metricName: `${this.name}_count`, labels, value: below });
    }
    return values;
  }
}
