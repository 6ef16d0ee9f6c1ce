import { describe, expect, test } from "vitest";
import { soakPage } from "./page.ts";
import { soak, type SoakResult, type SoakSample } from "./soak.ts";
import { judge } from "./verdict.ts";

/** Too short for memory to settle, and other tests take the machine meanwhile: here only what grows without bound would show. */
const SHORT = { seconds: 30, streams: 40, workers: 4, indexBlocks: 1024, sampleSeconds: 0.5 };
const SHORT_BOUNDS = { growth: 0.5, underWay: 0.5 };

test("a gateway under load keeps its memory, its index at the cap and its books in order", async () => {
  const result = await soak(SHORT);
  const findings = judge(result, SHORT_BOUNDS);
  expect(findings.filter(({ isGood }) => !isGood)).toEqual([]);
  expect(result.gateway.completed).toBeGreaterThan(SHORT.streams);
  expect(soakPage(result, findings, "now", "npm run soak")).not.toContain("NaN");
});

describe("the verdict on a soak", () => {
  const good = resultOf({});

  test("nothing is wrong with one that stays as it was", () => {
    expect(wrong(good)).toEqual([]);
  });

  test.each([
    ["memory that grows by a tenth", { last: { residentBytes: 1.1e8 } }, /^resident memory/],
    ["an index that never fills", { all: { indexPages: 3 } }, /^the index/],
    ["an index that forgets nothing", { all: { evictedPages: 0 } }, /^the index/],
    ["an index above its cap", { last: { indexBlocks: 1025 } }, /^the index/],
    ["streams that have gone", { last: { unfinished: 10 } }, /^the streams/],
    ["a request in no account", { gateway: { completed: 99 } }, /^every/],
    ["a request that has not ended", { gateway: { completed: 99, unfinished: 1 } }, /^every/],
    ["a request that the client saw end otherwise", { gateway: { completed: 99, failed: 1 } }, /^every account/],
  ] as const)("%s is seen", (_, changes, what) => {
    const found = wrong(resultOf(changes));
    expect(found.length).toBeGreaterThan(0);
    for (const one of found) expect(one).toMatch(what);
  });
});

function wrong(result: SoakResult): string[] {
  return judge(result, { growth: 0.05, underWay: 0.9 }).flatMap(({ what, isGood }) => (isGood ? [] : [what]));
}

/** A soak of 100 seconds with nothing wrong but the changes. */
function resultOf(changes: {
  readonly all?: Partial<SoakSample>;
  readonly last?: Partial<SoakSample>;
  readonly gateway?: object;
}): SoakResult {
  const samples = Array.from({ length: 100 }, (_, i) => ({
    atSeconds: i + 1,
    residentBytes: 1e8,
    heapUsedBytes: 3e7,
    externalBytes: 1e6,
    indexBlocks: 500,
    indexPages: 62,
    indexMaxPages: 64,
    evictedPages: i,
    offered: i,
    unfinished: 40,
    ...changes.all,
    ...(i >= 75 && changes.last),
  }));
  const accounts = { completed: 100, shed: 0, rejected: 0, failed: 0, timedOut: 0, cancelled: 0, unfinished: 0 };
  const client = {
    accounting: { offered: 100, ...accounts },
    requestsPerSecond: 1,
    outputTokensPerSecond: 1,
    cacheHitRate: 0.5,
  };
  const plan = { ...SHORT, seconds: 100, sampleSeconds: 1 };
  return { plan, samples, gateway: { offered: 100, ...accounts, ...changes.gateway }, client };
}
