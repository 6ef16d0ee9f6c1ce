import { describe, expect, test } from "vitest";
import { capacities, limitsOf } from "./capacity.ts";
import { cellOf, groupOf, latencyOf } from "./cells.test-support.ts";
import type { ArmAtLevel } from "./groups.ts";

function at(concurrency: number, ttftP95: number, tpotP95 = 5, workers = 2): ArmAtLevel {
  const latencies = { ttftMs: latencyOf({ p95: ttftP95 }), tpotMs: latencyOf({ p95: tpotP95 }) };
  return groupOf(cellOf("kv", { level: { concurrency, workers }, latencies }));
}

describe("the capacity of an arm under a limit", () => {
  test("each limit on its own, and all together where there are several", () => {
    expect(limitsOf({})).toEqual([]);
    expect(limitsOf({ ttftMs: 600 }).map(({ title }) => title)).toEqual(["TTFT p95 ≤ 600 ms"]);
    expect(limitsOf({ ttftMs: 600, tpotMs: 60 }).map(({ title }) => title)).toEqual([
      "TTFT p95 ≤ 600 ms",
      "TPOT p95 ≤ 60 ms",
      "all of them",
    ]);
  });

  test("is the largest load that meets it, whatever order levels come in", () => {
    const [capacity] = capacities([at(120, 900), at(40, 300), at(80, 600)], { ttftMs: 600 });
    expect(capacity.levels.map(({ level, verdict }) => [level.concurrency, verdict])).toEqual([
      [40, "met"],
      [80, "met"],
      [120, "missed"],
    ]);
    expect(capacity.largest?.concurrency).toBe(80);
    expect(capacity.firstMissed?.concurrency).toBe(120);
  });

  test("a p95 that was not reached is a miss, one that is not known is neither", () => {
    const [capacity] = capacities([at(40, Infinity), at(80, Number.NaN)], { ttftMs: 600 });
    expect(capacity.levels.map(({ verdict }) => verdict)).toEqual(["missed", "unknown"]);
    expect(capacity.largest).toBeUndefined();
  });

  test("a range meets a limit only as a whole", () => {
    const between = (low: number, high: number): ArmAtLevel => {
      const group = at(40, 1);
      const offered = { ...group.latencies.ttftMs.offered, p95: { state: "between", low, high } as const };
      return { ...group, latencies: { ...group.latencies, ttftMs: { ...group.latencies.ttftMs, offered } } };
    };
    const verdictOf = (group: ArmAtLevel): string => capacities([group], { ttftMs: 600 })[0].levels[0].verdict;
    expect([between(100, 600), between(100, 700), between(601, 700)].map(verdictOf)).toEqual([
      "met",
      "unknown",
      "missed",
    ]);
  });

  test("all limits together show the one that is missed, and fleets of other sizes stand apart", () => {
    const found = capacities([at(40, 300, 80), at(40, 300, 20, 4)], { ttftMs: 600, tpotMs: 60 });
    const together = found.filter(({ limit }) => limit.title === "all of them");
    expect(together.map(({ workers }) => workers)).toEqual([2, 4]);
    expect(together[0].levels[0]).toMatchObject({ verdict: "missed", p95: { state: "ok", value: 80 } });
    expect(together[1].levels[0]).toMatchObject({ verdict: "met", p95: { state: "ok", value: 300 } });
  });
});
