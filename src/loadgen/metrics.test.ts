import { describe, expect, test } from "vitest";
import { NS_PER_MS, NS_PER_SECOND } from "../core/clock.ts";
import { requestRecord } from "../core/request-record.ts";
import { RollingMetrics } from "../measure/rolling/rolling-metrics.ts";
import { judge } from "./client-health.ts";
import { LoadTotals } from "./load-totals.ts";
import { LoadMetrics, type ShownRun } from "./metrics.ts";

const health = judge({
  scheduleLagP99Ms: 0,
  scheduleLagMaxMs: 0,
  loopDelayP99Ms: 0,
  loopDelayMaxMs: 0,
  loopUtilisation: 0,
  judgedSeconds: 0,
  bottleneckSeconds: 0,
  recent: undefined,
});

function runOf(rolling: RollingMetrics, totals: LoadTotals, concurrency?: number): ShownRun {
  return {
    concurrency,
    rolling: () => rolling.read(NS_PER_SECOND),
    accounts: () => totals.accounts(),
    clientHealth: () => health,
    summary: () => ({ seconds: 1, totals, health }),
  };
}

function valueOf(text: string, series: string): number {
  const line = text.split("\n").find((one) => one.startsWith(`${series} `));
  return Number(line?.slice(series.length + 1));
}

describe("the metrics of a load", () => {
  test("have TTFT as a summary with p50, p95 and p99, told directly or by another process", async () => {
    const rolling = new RollingMetrics();
    const direct = new LoadMetrics(runOf(rolling, new LoadTotals()));
    for (let ms = 1; ms <= 100; ms++) {
      direct.firstToken(ms * NS_PER_MS);
      rolling.firstToken(ms * NS_PER_MS, 0);
    }
    const absorbed = new LoadMetrics(runOf(rolling, new LoadTotals()));
    absorbed.absorb(rolling.slice(0)!);
    for (const metrics of [direct, absorbed]) {
      const text = await metrics.text();
      expect(text).toContain("# TYPE loadgen_ttft_all_seconds summary");
      expect(valueOf(text, "loadgen_ttft_all_seconds_count")).toBe(100);
      expect(valueOf(text, 'loadgen_ttft_all_seconds{quantile="0.5"}')).toBeCloseTo(0.05, 2);
      expect(valueOf(text, 'loadgen_ttft_all_seconds{quantile="0.95"}')).toBeCloseTo(0.095, 2);
      expect(valueOf(text, 'loadgen_ttft_all_seconds{quantile="0.99"}')).toBeCloseTo(0.099, 2);
    }
  });

  test("count requests by account, and leave out what is not known", async () => {
    const totals = new LoadTotals();
    totals.add(requestRecord({ id: "1", intendedNs: 0, promptTokens: 10, outputTokens: 4, account: "completed" }));
    totals.add(requestRecord({ id: "2", intendedNs: 0, promptTokens: 10, account: "shed" }));
    const text = await new LoadMetrics(runOf(new RollingMetrics(), totals)).text();
    expect(text).toContain('loadgen_requests_total{account="completed"} 1');
    expect(text).toContain('loadgen_requests_total{account="shed"} 1');
    expect(text).toContain("loadgen_offered_total 2");
    expect(text).toContain("loadgen_output_tokens_total 4");
    expect(text).not.toMatch(/^loadgen_(concurrency|cache_hit_rate|itl_seconds)/m);
  });

  test("do not count twice what is read twice", async () => {
    const totals = new LoadTotals();
    totals.add(requestRecord({ id: "1", intendedNs: 0, promptTokens: 10, account: "completed" }));
    const metrics = new LoadMetrics(runOf(new RollingMetrics(), totals, 7));
    await metrics.text();
    const text = await metrics.text();
    expect(text).toContain("loadgen_offered_total 1");
    expect(text).toContain("loadgen_concurrency 7");
  });
});
