import { beforeEach, describe, expect, it } from "vitest";
import { NS_PER_SECOND } from "../clock.ts";
import { LoadModel } from "./load-model.ts";

describe("LoadModel", () => {
  let model: LoadModel;

  beforeEach(() => {
    model = new LoadModel({ maxReplicas: 3, blockTokens: 16, inactivityNs: 100 });
    model.addReplica(0, { worker: "a", batchSlots: 64, kvBlocks: 1_000, stepTokens: 2_048 });
    model.addReplica(1, { worker: "b" });
  });

  it("follows a request from its reservation to its end", () => {
    model.reserve(10, "r", 0, 100, 64);
    expect(model.describe(0).modelled).toEqual({
      inFlight: 1,
      decoding: 0,
      pendingPrefillTokens: 36,
      contextTokens: 0,
      activeBlocks: 7,
    });
    model.sent(11, "r");
    expect(model.firstToken(30, "r")).toEqual({
      replica: 0,
      promptTokens: 100,
      prefillTokens: 36,
      sincePlacedNs: 20,
      meanwhile: { tokens: 36, pairs: 36 * 82, batches: 1 },
    });
    expect(model.firstToken(31, "r")).toBeUndefined();
    // Told a moment after the first token, it is the first token all the same, and no step that took a moment.
    expect(model.grew(31, "r", 1)).toMatchObject({ replica: 0, tokens: 1, sinceLastNs: 0, firstToken: undefined });
    expect(model.grew(36, "r", 12)).toMatchObject({ sinceLastNs: 5 });
    expect(model.describe(0).modelled).toEqual({
      inFlight: 1,
      decoding: 1,
      pendingPrefillTokens: 0,
      contextTokens: 113,
      activeBlocks: 8,
    });
    expect(model.ended(40, "r")).toEqual({
      replica: 0,
      promptTokens: 100,
      cachedTokens: 64,
      outputTokens: 13,
      placedNs: 10,
      firstTokenNs: 30,
    });
    expect(model.size).toBe(0);
    expect(model.inFlightRequests(0)).toBe(0);
    expect(model.lateSignals).toBe(0);
  });

  it("takes growth without a first token as the first token", () => {
    model.reserve(0, "r", 0, 32, 0);
    expect(model.grew(5, "r", 0)?.firstToken).toBeUndefined();
    const growth = model.grew(20, "r", 4);
    expect(growth).toMatchObject({
      replica: 0,
      tokens: 4,
      sinceLastNs: 0,
      firstToken: { replica: 0, prefillTokens: 32, sincePlacedNs: 20 },
    });
    expect(model.ended(30, "r")?.firstTokenNs).toBe(20);
  });

  it("counts late signals and is not disturbed by them", () => {
    model.sent(0, "gone");
    expect(model.firstToken(0, "gone")).toBeUndefined();
    expect(model.grew(0, "gone", 1)).toBeUndefined();
    expect(model.ended(0, "gone")).toBeUndefined();
    model.report(2, { running: 1, waiting: 0, kvUsage: 0 }, 0);
    expect(model.lateSignals).toBe(5);
  });

  it("expires by silence and not by age", () => {
    model.reserve(0, "silent", 0, 10, 0);
    model.reserve(0, "lively", 0, 10, 0);
    for (let nowNs = 50; nowNs <= 1_000; nowNs += 50) model.grew(nowNs, "lively", 1);
    expect(model.expire(1_000)).toEqual(["silent"]);
    expect(model.expire(1_099)).toEqual([]);
    expect(model.expire(1_100)).toEqual(["lively"]);
    expect(model.columns.activeBlocks[0]).toBe(0);
  });

  it("keeps the order of activity when clocks disagree", () => {
    model.reserve(500, "a", 0, 10, 0);
    model.reserve(450, "b", 0, 10, 0);
    expect(model.expire(560)).toEqual([]);
    expect(model.expire(600)).toEqual(["a", "b"]);
  });

  it("forgets a removed replica, which may come back clean", () => {
    model.reserve(0, "r", 0, 10, 0);
    model.reserve(0, "s", 1, 10, 0);
    model.reserve(0, "t", 0, 10, 0);
    expect(model.removeReplica(0)).toEqual(["r", "t"]);
    expect(model.ended(1, "r")).toBeUndefined();
    expect(model.size).toBe(1);
    model.addReplica(0, { worker: "c" });
    expect(model.describe(0)).toMatchObject({ modelled: { inFlight: 0, activeBlocks: 0 }, batchSlots: 0, kvBlocks: 0 });
  });

  it("takes capacities from reports only where none were configured", () => {
    const reported = { running: 3, waiting: 1, kvUsage: 0.5, batchSlots: 256, kvBlocks: 5_000 };
    model.report(0, reported, 7);
    model.report(1, reported, 7);
    expect(model.describe(0)).toMatchObject({ batchSlots: 64, kvBlocks: 1_000, reported, reportedNs: 7 });
    expect(model.describe(1)).toMatchObject({ batchSlots: 256, kvBlocks: 5_000, stepTokens: 0, reported });
    model.report(1, { running: 0, waiting: 0, kvUsage: 0 }, 8);
    expect(model.columns.batchSlots[1]).toBe(256);
  });

  it("feeds the drain rates with finished work, and not with failures", () => {
    model.reserve(0, "refused", 0, 1_000, 0);
    model.ended(1, "refused");
    expect(model.drainRates.perSecond(0, 1).completionsPerSecond).toBe(0);
    // Ten of its blocks were there before, and may stay when it goes.
    model.reserve(1, "served", 0, 1_000, 160);
    model.grew(NS_PER_SECOND, "served", 10);
    model.ended(2 * NS_PER_SECOND, "served");
    const rates = model.drainRates.perSecond(0, 2 * NS_PER_SECOND);
    expect(rates.completionsPerSecond).toBeCloseTo(0.5, 0);
    expect(rates.prefillTokensPerSecond).toBeGreaterThan(400);
    expect(rates.blocksPerSecond / rates.completionsPerSecond).toBeCloseTo(54);
  });

  it.each([
    ["WP_DUPLICATE_REQUEST", (): void => model.reserve(0, "r", 1, 1, 0)],
    ["WP_UNKNOWN_REPLICA", (): void => model.reserve(0, "s", 2, 1, 0)],
    ["WP_INVALID_INPUT", (): void => model.reserve(0, "s", 0, 10, 11)],
    ["WP_INVALID_INPUT", (): void => model.reserve(0, "s", 0, Number.NaN, 0)],
    ["WP_INVALID_INPUT", (): void => void model.grew(0, "r", 0.5)],
    ["WP_INVALID_INPUT", (): void => void new LoadModel({ maxReplicas: 1, blockTokens: 0, inactivityNs: 1 })],
    ["WP_UNKNOWN_REPLICA", (): void => void model.removeReplica(2)],
    ["WP_UNKNOWN_REPLICA", (): void => void model.describe(2)],
    ["WP_CAPACITY_EXCEEDED", (): void => model.addReplica(3, { worker: "d" })],
    ["WP_INVALID_STATE", (): void => model.addReplica(0, { worker: "d" })],
  ])("throws %s and changes nothing", (code, act) => {
    model.reserve(0, "r", 0, 10, 0);
    const before = model.describe(0);
    expect(act).toThrowError(expect.objectContaining({ code }));
    expect(model.describe(0)).toEqual(before);
    expect(model.size).toBe(1);
  });
});
