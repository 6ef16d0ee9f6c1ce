import type { Metric, MetricObjectWithValues, MetricValue, MetricValueWithName, Registry } from "prom-client";

/** Something that a registry can ask for its values. */
export interface ReadableMetric {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "histogram";
  values(): MetricValueWithName<string>[];
}

const SEPARATOR = "\u0000";

/**
 * One state for every combination of labels. What prom-client keeps is found by sorting and joining the names of labels each
 * time, which for a request costs more than deciding about it; here a state is one look-up away.
 */
export class LabelledSeries<State> {
  readonly #names: readonly string[];
  readonly #make: () => State;
  readonly #states = new Map<string, State>();

  constructor(names: readonly string[], make: () => State) {
    this.#names = names;
    this.#make = make;
  }

  /** The state under these labels, given in the order of their names. */
  of(first: string, ...others: readonly string[]): State {
    const key = others.length === 0 ? first : first + SEPARATOR + others.join(SEPARATOR);
    let state = this.#states.get(key);
    if (state === undefined) {
      state = this.#make();
      this.#states.set(key, state);
    }
    return state;
  }

  *entries(): Iterable<readonly [labels: Record<string, string>, state: State]> {
    for (const [key, state] of this.#states) {
      const values = key.split(SEPARATOR);
      yield [Object.fromEntries(this.#names.map((name, i) => [name, values[i]])), state];
    }
  }
}

/** Adds a metric of ours to a registry, which only ever asks a metric for its values. */
export function register(registry: Registry, metric: ReadableMetric): void {
  const { name, help, type } = metric;
  const get = (): Promise<MetricObjectWithValues<MetricValue<string>>> =>
    // The types know the kinds of metrics only as an enum that is erased.
    Promise.resolve({ name, help, type, aggregator: "sum", values: metric.values() } as never);
  registry.registerMetric({ name, help, type, get, reset: () => {} } as unknown as Metric);
}
