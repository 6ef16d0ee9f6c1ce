/** What the presets must show against the studies they reproduce; one run of each, where the presets themselves have several. */
import { dirname } from "node:path";
import { describe, expect, test } from "vitest";
import type { CellResult } from "../../src/lab/results/types.ts";
import { requireData } from "../support/required-component.ts";
import { runWarmpath } from "../support/run-program.ts";

interface RunJson {
  readonly cells: readonly CellResult[];
  readonly published: {
    readonly errors: readonly { arm: string; metric: string; n: number; meanAbsolute: number; worst: number }[];
    readonly contrasts: readonly { metric: string; published: number; simulated: number }[];
    readonly refusal?: string;
  };
}

async function runPreset(words: readonly string[], data?: string): Promise<RunJson> {
  const environment = data === undefined ? {} : { WARMPATH_DATA: data };
  const { status, stdout, stderr } = await runWarmpath(["run", ...words, "--compare-published", "--json"], {
    environment,
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  return JSON.parse(stdout) as RunJson;
}

function cellOf({ cells }: RunJson, arm: string, workers: number): CellResult {
  const found = cells.find((cell) => cell.arm === arm && cell.level.workers === workers);
  if (found === undefined) throw new Error(`no cell of ${arm} on ${workers}`);
  return found;
}

describe("h200-sweep", () => {
  test("has tokens/s and ITL of round-robin within 12 % of the study on average, and none worse than 25 %", async () => {
    const { published } = await runPreset(["h200-sweep", "--runs", "1"]);
    for (const metric of ["outputTokensPerSecond", "tpotP50Ms"]) {
      const error = published.errors.find((one) => one.arm === "round-robin" && one.metric === metric);
      // The level that was fitted is not among them.
      expect(error?.n).toBe(6);
      expect(error?.meanAbsolute).toBeLessThanOrEqual(12);
      expect(Math.abs(error?.worst ?? Infinity)).toBeLessThanOrEqual(25);
    }
    const gaps = published.contrasts.filter(({ metric }) => metric === "hitShare");
    expect(gaps).toHaveLength(7);
    for (const gap of gaps) expect(gap.simulated).toBeGreaterThan(0);
  });
});

describe("h100-tp2-sweep", () => {
  test("serves within 15 % of 5.2 requests/s at 120, and hits more under kv at nine levels", async () => {
    const run = await runPreset(["h100-tp2-sweep", "--runs", "1"]);
    for (const cell of run.cells) {
      if (cell.level.concurrency === 120) expect(Math.abs(cell.requestsPerSecond / 5.2 - 1)).toBeLessThanOrEqual(0.15);
    }
    const gaps = run.published.contrasts.filter(({ metric }) => metric === "hitShare");
    expect(gaps).toHaveLength(9);
    for (const gap of gaps) expect(gap.simulated).toBeGreaterThan(0);
  });
});

describe("a100-scaling on the head of the trace", () => {
  test("is saturated at 2 workers, where shedding keeps latency down, and idle at 8", async (context) => {
    const head = requireData(context, "traces/toolagent_head_1000.jsonl");
    const words = ["a100-scaling", "--runs", "1", "--arms", "round-robin,kv,kv-shed"];
    const run = await runPreset(words, dirname(dirname(head)));
    const queueing = cellOf(run, "round-robin", 2);
    expect(queueing.accounting).toMatchObject({ offered: 865, completed: 865 });
    expect(Math.abs(queueing.requestsPerSecondOverSpan / 3.72 - 1)).toBeLessThanOrEqual(0.1);
    expect(queueing.saturated).toBe(true);
    expect(queueing.stationarity.ttftTrend).toBeGreaterThan(0.8);
    const shedding = cellOf(run, "kv-shed", 2);
    const shedShare = shedding.accounting.shed / shedding.accounting.offered;
    expect(shedShare).toBeGreaterThanOrEqual(0.1);
    expect(shedShare).toBeLessThanOrEqual(0.2);
    expect(shedding.ttftMs.completed.p50).toBeGreaterThan(1300);
    expect(shedding.ttftMs.completed.p50).toBeLessThan(5000);
    expect(cellOf(run, "kv", 2).accounting.shed).toBe(0);
    const idle = cellOf(run, "round-robin", 8);
    expect(Math.abs((idle.ttftMs.completed.p50 ?? Infinity) / 197 - 1)).toBeLessThanOrEqual(0.1);
  });
});

describe("toolagent-ab on the head of the trace", () => {
  test("gives no error against the study, which ran on the whole trace", async (context) => {
    const head = requireData(context, "traces/toolagent_head_1000.jsonl");
    const { published, cells } = await runPreset(["toolagent-ab"], dirname(dirname(head)));
    // Where somebody has fetched the whole trace, the comparison is given.
    if (cells[0].accounting.offered > 1000) return;
    expect(published.refusal).toMatch(/toolagent_head_1000\.jsonl .*no error against the study is given$/);
    expect(published.errors).toBeUndefined();
    expect(cells).toHaveLength(4);
  });
});
