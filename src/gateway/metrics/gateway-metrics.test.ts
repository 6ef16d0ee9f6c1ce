import { describe, expect, test } from "vitest";
import { LATENCY_BOUNDS_SECONDS } from "./buckets.ts";
import { GapRecorder } from "./gap-recorder.ts";
import { GatewayMetrics } from "./gateway-metrics.ts";

/** The value of one series. */
function value(text: string, series: string): number | undefined {
  const line = text.split("\n").find((one) => one.startsWith(`${series} `));
  return line === undefined ? undefined : Number(line.split(" ").at(-1));
}

describe("the gateway's metrics", () => {
  test("reach from 1 ms to 600 s", () => {
    expect(LATENCY_BOUNDS_SECONDS[0]).toBe(0.001);
    expect(LATENCY_BOUNDS_SECONDS.at(-1)).toBe(600);
    expect([...LATENCY_BOUNDS_SECONDS].sort((a, b) => a - b)).toEqual(LATENCY_BOUNDS_SECONDS);
  });

  test("count gaps into the bucket whose bound they do not exceed", async () => {
    const gaps = new GapRecorder();
    for (const ms of [0.5, 1, 1.2, 20, 700_000]) gaps.add(ms, 1);
    const metrics = new GatewayMetrics();
    metrics.ended("p", undefined, { outcome: "completed", gaps });
    metrics.ended("p", undefined, { outcome: "completed", gaps });
    const text = await metrics.text();
    const bucket = (le: string): number | undefined =>
      value(text, `warmpath_inter_token_latency_seconds_bucket{le="${le}",policy="p"}`);
    expect([bucket("0.001"), bucket("0.0015"), bucket("0.02"), bucket("600"), bucket("+Inf")]).toEqual([
      4, 6, 8, 8, 10,
    ]);
    expect(value(text, 'warmpath_inter_token_latency_seconds_count{policy="p"}')).toBe(10);
    expect(value(text, 'warmpath_inter_token_latency_seconds_sum{policy="p"}')).toBeCloseTo(1400.0454, 4);
  });

  test("count several tokens that come at once as gaps of nothing", () => {
    const gaps = new GapRecorder();
    gaps.add(30, 4);
    expect(gaps.counts.reduce((sum, count) => sum + count, 0)).toBe(4);
    expect(gaps.counts[0]).toBe(3);
    expect(gaps.sumSeconds).toBe(0.03);
  });

  test("have the same series under every policy", async () => {
    const names = await Promise.all(
      ["round-robin", "kv-cost"].map(async (policy) => {
        const metrics = new GatewayMetrics();
        metrics.offered(policy, { parseMs: 1, tokenizeMs: 1, hashMs: 1 });
        metrics.routed(policy, { matchMs: 0.1, scoreMs: 0.1, recordMs: 0.1 });
        metrics.eventLag(policy, 3);
        const placed = { policy, promptTokens: 9, predictedCachedTokens: 4 };
        metrics.waited(policy, 0);
        metrics.placed(placed);
        metrics.ended(policy, placed, { outcome: "completed", cachedTokens: 3, ttftMs: 5, durationMs: 9 });
        return (await metrics.text()).replaceAll(policy, "POLICY").replaceAll(/ [\d.e+-]+$/gm, "");
      }),
    );
    expect(names[0]).toBe(names[1]);
  });
});
