import type { MetricValueWithName } from "prom-client";
import { LabelledSeries, type ReadableMetric } from "./labelled-series.ts";

/** A counter by labels. */
export class PlainCounter implements ReadableMetric {
  readonly name: string;
  readonly help: string;
  readonly type = "counter";
  readonly #series: LabelledSeries<{ value: number }>;

  constructor(name: string, help: string, labelNames: readonly string[]) {
    this.name = name;
    this.help = help;
    this.#series = new LabelledSeries(labelNames, () => ({ value: 0 }));
  }

  add(amount: number, label: string, ...labels: readonly string[]): void {
    this.#series.of(label, ...labels).value += amount;
  }

  values(): MetricValueWithName<string>[] {
    return Array.from(this.#series.entries(), ([labels, { value }]) => ({ metricName: this.name, labels, value }));
  }
}
