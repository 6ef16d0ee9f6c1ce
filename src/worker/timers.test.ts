import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { NS_PER_MS, NS_PER_SECOND } from "../core/clock.ts";
import { WallTimers } from "./timers.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
});

afterEach(() => {
  vi.useRealTimers();
});

describe("the machine's timers", () => {
  test("call back when the time has come, never before", () => {
    const timers = new WallTimers();
    const rung: number[] = [];
    timers.at(10.5 * NS_PER_MS, () => rung.push(timers.nowNs()));
    vi.advanceTimersByTime(10);
    expect(rung).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(rung).toEqual([11 * NS_PER_MS]);
  });

  test("run as much faster as they are told", () => {
    const timers = new WallTimers(10);
    const rung = vi.fn<() => void>();
    timers.at(NS_PER_SECOND, rung);
    vi.advanceTimersByTime(99);
    expect(rung).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(rung).toHaveBeenCalledOnce();
    expect(timers.nowNs()).toBe(NS_PER_SECOND);
  });

  test("slow down, stand still and go on with what is pending", () => {
    const timers = new WallTimers();
    const rung = vi.fn<() => void>();
    timers.at(100 * NS_PER_MS, rung);
    vi.advanceTimersByTime(50);
    timers.pace = 0;
    vi.advanceTimersByTime(1000);
    expect([timers.nowNs(), rung.mock.calls.length]).toEqual([50 * NS_PER_MS, 0]);
    timers.pace = 0.5;
    vi.advanceTimersByTime(99);
    expect(rung).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(rung).toHaveBeenCalledOnce();
  });

  test("can be called off, and wait for longer than the machine can at once", () => {
    const timers = new WallTimers();
    const [cancelled, late] = [vi.fn<() => void>(), vi.fn<() => void>()];
    timers.at(NS_PER_MS, cancelled).cancel();
    timers.at(3e9 * NS_PER_MS, late);
    vi.advanceTimersByTime(2.9e9);
    expect([cancelled, late].map(({ mock }) => mock.calls.length)).toEqual([0, 0]);
    vi.advanceTimersByTime(0.1e9);
    expect(late).toHaveBeenCalledOnce();
  });
});
