import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { checkFleet } from "./fleet-checks.ts";
import type { FleetFacts, WorkerFacts } from "./fleet-facts.ts";

const WELL: WorkerFacts = {
  name: "a",
  url: "http://a",
  isReachable: true,
  isHealthy: true,
  phase: "ready",
  models: ["demo"],
  blockTokens: 16,
  kvBlocks: 1000,
  batchSlots: 64,
  tokens: [1, 2, 3],
  indexState: "live",
  newEvents: 3,
  probeBlocks: 20,
  matchedBlocks: 20,
  repeatedCachedTokens: 304,
  clockAheadMs: 400,
};

const FLEET: FleetFacts = {
  gatewayUrl: "http://gateway",
  isGatewayReachable: true,
  blockTokens: 16,
  tokenizer: "word",
  tokens: [1, 2, 3],
  workers: [WELL, { ...WELL, name: "b" }],
};

const withSecond = (changes: Partial<WorkerFacts>): FleetFacts => ({
  ...FLEET,
  workers: [WELL, { ...WELL, name: "b", ...changes }],
});

/** Places in the guide that can be linked to. */
const GUIDE = "docs/guides/troubleshooting.md";
const ANCHORS = readFileSync(new URL(`../../../${GUIDE}`, import.meta.url), "utf8")
  .split("\n")
  .flatMap((line) => (line.startsWith("## ") ? [line.slice(3).toLowerCase().replaceAll(" ", "-")] : []));

/** Each case breaks one thing, and only the check of that name may fail. */
const CASES: readonly (readonly [code: string, what: string, facts: FleetFacts])[] = [
  ["reachable", "the gateway does not answer", { ...FLEET, isGatewayReachable: false }],
  ["reachable", "there are no workers", { ...FLEET, workers: [] }],
  ["reachable", "a worker does not answer", withSecond({ isReachable: false, isHealthy: false, phase: "unhealthy" })],
  ["healthy", "a worker is ill", withSecond({ isHealthy: false })],
  ["healthy", "a worker is drained", withSecond({ phase: "draining" })],
  ["same-model", "a worker serves another model", withSecond({ models: ["other"] })],
  ["same-block-size", "a worker has other blocks", withSecond({ blockTokens: 1 })],
  ["equal-workers", "a worker has half the cache", withSecond({ kvBlocks: 500 })],
  ["equal-workers", "a worker has a smaller batch", withSecond({ batchSlots: 32 })],
  ["tokenizer", "the gateway guesses", { ...FLEET, tokens: undefined, tokenizer: "none" }],
  ["tokenizer", "a worker has other tokens", withSecond({ tokens: [1, 2, 4] })],
  ["kv-events", "a worker sends no events", withSecond({ newEvents: 0 })],
  ["kv-events", "a worker's events were lost", withSecond({ indexState: "partial" })],
  ["hashes", "the index does not find what a worker has", withSecond({ matchedBlocks: 0 })],
  ["cache-hits", "an engine does not reuse anything", withSecond({ repeatedCachedTokens: 0 })],
  ["clocks", "a worker lives in the past", withSecond({ clockAheadMs: -90_000 })],
];

describe("the checks of a fleet", () => {
  test("all pass for a fleet without fault", () => {
    expect(checkFleet(FLEET).filter(({ status }) => status !== "passed")).toEqual([]);
  });

  test.each(CASES)("%s alone fails when %s, and says what to do", (code, _, facts) => {
    const notPassed = checkFleet(facts).filter(({ status }) => status === "failed");
    expect(notPassed.map((finding) => finding.code)).toEqual([code]);
    expect(notPassed[0].advice?.length).toBeGreaterThan(10);
    expect(notPassed[0].isFatal).toBe(code !== "clocks");
    const [path, anchor] = notPassed[0].guide?.split("#") ?? [];
    expect(path).toBe(GUIDE);
    expect(ANCHORS).toContain(anchor);
  });

  test("what nobody can tell is unavailable, not passed and not failed", () => {
    const silent: WorkerFacts = {
      ...WELL,
      models: undefined,
      blockTokens: undefined,
      kvBlocks: undefined,
      batchSlots: undefined,
      tokens: undefined,
      newEvents: undefined,
      matchedBlocks: undefined,
      repeatedCachedTokens: undefined,
      clockAheadMs: undefined,
    };
    const findings = checkFleet({ ...FLEET, workers: [silent] });
    expect(findings.filter(({ status }) => status === "unavailable").map(({ code }) => code)).toEqual([
      "same-model",
      "same-block-size",
      "equal-workers",
      "tokenizer",
      "kv-events",
      "hashes",
      "cache-hits",
      "clocks",
    ]);
  });
});
