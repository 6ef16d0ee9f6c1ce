import { describe, expect, test } from "vitest";
import { NS_PER_SECOND } from "../../core/clock.ts";
import { Rng } from "../../core/rng.ts";
import { ArrivalSupply } from "../../workload/arrival-supply.ts";
import { PrefixGroups } from "../../workload/prefix-groups.ts";
import { Schedule } from "../../workload/schedule.ts";
import { LimitedSource, WindowedSource } from "./windowed-source.ts";

function everySecond(): Schedule {
  const groups = { groups: 1, skew: 0, prefixTokens: [1, 1], suffixTokens: [1, 1], outputTokens: [1, 1] } as const;
  const supply = new PrefixGroups(groups, new Rng(1));
  return new Schedule(new ArrivalSupply(supply, { kind: "constant", rateRps: 1 }, new Rng(1)));
}

describe("a source with a window", () => {
  test("goes on until the last request of the window has ended", () => {
    const window = { startNs: NS_PER_SECOND, endNs: 3 * NS_PER_SECOND, drainNs: 100 * NS_PER_SECOND };
    const source = new WindowedSource(everySecond(), window);
    const [before, first, second, after] = Array.from({ length: 4 }, () => source.take());
    expect(after.arrivalNs).toBe(window.endNs);
    const end = { nowNs: 9 * NS_PER_SECOND, completed: true };
    source.ended(before, end);
    source.ended(second, end);
    source.ended(after, end);
    expect(source.nextDueNs()).toBe(4 * NS_PER_SECOND);
    source.ended(first, end);
    expect(source.nextDueNs()).toBe(Infinity);
  });
});

describe("a source with a limit", () => {
  test("ends after so many requests", () => {
    const source = new LimitedSource(everySecond(), 2);
    source.take();
    expect(source.nextDueNs()).toBe(NS_PER_SECOND);
    source.take();
    expect(source.nextDueNs()).toBe(Infinity);
  });
});
