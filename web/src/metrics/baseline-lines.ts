import {
  type BaselineMetric,
  type BaselineReading,
  type BaselineRole,
  baselineOf,
  type Baselines,
  lookUpBaseline,
} from "../../../src/dashboard/protocol.ts";

/** The lines beside the live one, in the order of the mission's comparison. */
export const BASELINE_LINES: readonly {
  readonly role: BaselineRole;
  readonly label: string;
  readonly colour: string;
  readonly dash: readonly number[];
}[] = [
  { role: "kv", label: "KV", colour: "--kv", dash: [7, 4] },
  { role: "round-robin", label: "round-robin", colour: "--round-robin", dash: [2, 3] },
  { role: "warmpath", label: "warmpath", colour: "--warmpath", dash: [10, 3, 2, 3] },
];

/** Reads baselines for a chart, whose moments have few different concurrencies: each is looked up once. */
export class BaselineReader {
  readonly #baselines: Baselines;
  readonly #readings = new Map<string, BaselineReading>();

  constructor(baselines: Baselines) {
    this.#baselines = baselines;
  }

  /** False where nothing was recorded at all. */
  get hasAny(): boolean {
    return this.#baselines.arms.length > 0;
  }

  read(role: BaselineRole, metric: BaselineMetric, concurrency: number | null): BaselineReading {
    if (concurrency === null) return { kind: "none" };
    const key = `${role} ${metric} ${concurrency}`;
    let reading = this.#readings.get(key);
    if (reading === undefined) {
      reading = lookUpBaseline(baselineOf(this.#baselines, role), metric, concurrency);
      this.#readings.set(key, reading);
    }
    return reading;
  }
}
