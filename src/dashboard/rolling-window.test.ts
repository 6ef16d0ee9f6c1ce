import { describe, expect, test } from "vitest";
import { accountingSum, type LatencyWindow, type RollingWindow, sloState } from "./rolling-window.ts";
import { QUIET_WINDOW } from "./test-doubles.ts";

const NOTHING: LatencyWindow = { n: 0, p50: null, p95: null, p99: null };

function latency(p95: number, n = 200): LatencyWindow {
  return { n, p50: p95 / 2, p95, p99: 2 * p95 };
}

function windowOf(changes: Partial<RollingWindow>): RollingWindow {
  return { ...QUIET_WINDOW, ...changes };
}

describe("the SLO", () => {
  const slo = { ttftMs: 600, tpotMs: 60 };

  test("is met when every p95 is within its limit", () => {
    expect(sloState(windowOf({ ttftMs: latency(600), tpotMs: latency(30) }), slo)).toBe("met");
  });

  test("is missed as soon as one is not, whatever the others", () => {
    expect(sloState(windowOf({ ttftMs: latency(601), tpotMs: NOTHING }), slo)).toBe("missed");
  });

  test("is missed when more than a twentieth fails, however fast the rest", () => {
    const fast = { ttftMs: latency(100), tpotMs: latency(20) };
    expect(sloState(windowOf({ ...fast, errorShare: 0.05 }), slo)).toBe("met");
    expect(sloState(windowOf({ ...fast, errorShare: 0.06 }), slo)).toBe("missed");
  });

  test("is open while too few requests have ended, and where there are no limits", () => {
    expect(sloState(windowOf({ ttftMs: latency(100, 19), tpotMs: latency(20) }), slo)).toBe("unknown");
    expect(sloState(windowOf({ ttftMs: latency(100) }), {})).toBe("unknown");
  });
});

test("accounts are summed without what was offered", () => {
  const accounting = {
    offered: 12,
    completed: 5,
    shed: 1,
    rejected: 1,
    failed: 1,
    timedOut: 1,
    cancelled: 1,
    unfinished: 2,
  };
  expect(accountingSum(accounting)).toBe(12);
});
