import { describe, expect, test } from "vitest";
import { type ClientHealth, ClientHealthMonitor, HEALTH_LIMITS, judge, worstHealth } from "./client-health.ts";

const good = {
  scheduleLagP99Ms: 2,
  scheduleLagMaxMs: 9,
  loopDelayP99Ms: 3,
  loopDelayMaxMs: 12,
  loopUtilisation: 0.3,
  judgedSeconds: 60,
  bottleneckSeconds: 0,
  recent: undefined,
} satisfies Omit<ClientHealth, "verdict" | "reasons">;

describe("the health of the client", () => {
  test("is good while every limit is kept", () => {
    expect(judge(good)).toMatchObject({ verdict: "ok", reasons: [] });
  });

  test("is not judged before the first period is over", () => {
    expect(judge({ ...good, judgedSeconds: 0 }).verdict).toBe("unknown");
    const monitor = new ClientHealthMonitor();
    monitor.sent(-5);
    expect(monitor.health()).toMatchObject({ verdict: "unknown", scheduleLagP99Ms: 0, recent: undefined });
    monitor.stop();
  });

  test("is a bottleneck once it was too slow for more than a tenth of the run, and says by which limit", () => {
    const slow = { ...good, scheduleLagP99Ms: 118, loopDelayP99Ms: 31, loopUtilisation: 0.93 };
    expect(judge({ ...slow, bottleneckSeconds: 10 })).toMatchObject({
      verdict: "bottleneck",
      reasons: [
        "requests left 118 ms late (p99, limit 50)",
        "the event loop was 31 ms late (p99, limit 20)",
        "the event loop was busy for 93 % of the time (limit 70 %)",
        "the client was too slow in 10 of 60 s",
      ],
    });
  });

  test("survives a hiccup, and tells of it", () => {
    const { verdict, reasons } = judge({ ...good, bottleneckSeconds: 5 });
    expect({ verdict, reasons }).toEqual({ verdict: "ok", reasons: ["the client was too slow in 5 of 60 s"] });
  });

  test("of several processes is that of the worst", () => {
    const recent = {
      scheduleLagP99Ms: 1,
      loopDelayP99Ms: 2,
      loopUtilisation: 0.2,
      verdict: "ok",
      reasons: [],
    } as const;
    const late = { ...recent, loopDelayP99Ms: HEALTH_LIMITS.loopDelayP99Ms + 1, verdict: "bottleneck" } as const;
    const health = worstHealth([
      judge({ ...good, recent }),
      judge({ ...good, loopDelayP99Ms: 40, bottleneckSeconds: 30, recent: late }),
    ]);
    expect(health).toMatchObject({ verdict: "bottleneck", loopDelayP99Ms: 40, recent: { verdict: "bottleneck" } });
    expect(health.recent?.reasons).toEqual(["the event loop was 21 ms late (p99, limit 20)"]);
  });
});
