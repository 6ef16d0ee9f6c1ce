import { describe, expect, test } from "vitest";
import type { Effect, Place } from "./effects.ts";
import { sequenceHashes } from "./hash.ts";
import type { Continuation } from "./open-request.ts";
import { createPolicy } from "./policy/registry.ts";
import type { RoutedRequest } from "./routed-request.ts";
import { Router } from "./router.ts";
import type { RouterOptions } from "./router-options.ts";

const BLOCK_TOKENS = 16;

function prompt(blocks: number): Pick<RoutedRequest, "promptTokens" | "sequence" | "blocks"> {
  const tokens = Uint32Array.from({ length: blocks * BLOCK_TOKENS }, (_, i) => i);
  return { promptTokens: tokens.length, sequence: sequenceHashes(tokens, BLOCK_TOKENS), blocks };
}

const REST: Continuation = { ...prompt(6), maxOutputTokens: 10 };

function fleetOf(workers: number, options: Partial<RouterOptions> = {}, batchSlots = 100): Router {
  const router = new Router(createPolicy("round-robin"), {
    blockTokens: BLOCK_TOKENS,
    maxReplicas: 4,
    maxBlocks: 1024,
    ...options,
  });
  for (let i = 0; i < workers; i++) router.addReplica({ worker: `worker-${i}`, batchSlots });
  return router;
}

/** A request that was placed and has its first token. */
function begun(router: Router, id = "x", more: Partial<RoutedRequest> = {}): Place {
  const place = placed(router.offer({ id, ...prompt(4), ...more }, 0));
  router.firstToken(id, 1);
  return place;
}

function placed(effects: readonly Effect[]): Place {
  const place = effects.find((effect) => effect.kind === "place");
  if (place === undefined) throw new Error(`no placement in ${JSON.stringify(effects)}`);
  return place;
}

describe("an answer that was cut", () => {
  test.each(["failed", "timedOut"] as const)("and %s goes on elsewhere, by the longer prompt", (outcome) => {
    const router = fleetOf(2);
    const first = begun(router);
    const second = placed(router.ended("x", { outcome, continuation: REST }, 2));
    expect(second.replica).not.toBe(first.replica);
    expect(router.log.get(second.decision)).toMatchObject({
      request: "x",
      attempt: 2,
      continues: first.decision,
      promptTokens: REST.promptTokens,
      filtered: { tried: [router.fleet.name(first.replica)] },
    });
    expect(router.log.get(first.decision)?.continues).toBeNull();
    expect(router.load.columns.pendingPrefillTokens[second.replica]).toBe(REST.promptTokens);
    router.firstToken("x", 3);
    router.ended("x", { outcome: "completed" }, 4);
    expect(router.accounting).toMatchObject({ offered: 1, completed: 1, unfinished: 0 });
    expect([...router.load.columns.inFlight.subarray(0, 2)]).toEqual([0, 0]);
  });

  test("goes on once; without a rest to ask for it stays cut", () => {
    const router = fleetOf(3);
    begun(router);
    placed(router.ended("x", { outcome: "failed", continuation: REST }, 2));
    router.firstToken("x", 3);
    expect(router.ended("x", { outcome: "failed", continuation: REST }, 4)).toEqual([]);
    begun(router, "y");
    expect(router.ended("y", { outcome: "failed" }, 5)).toEqual([]);
    expect(router.accounting).toMatchObject({ offered: 2, failed: 2, unfinished: 0 });
  });

  test("is tried on a third worker if the second cannot begin, and remembers where it was cut", () => {
    const router = fleetOf(3);
    const first = begun(router);
    placed(router.ended("x", { outcome: "failed", continuation: REST }, 2));
    const third = placed(router.ended("x", { outcome: "failed" }, 3));
    expect(router.log.get(third.decision)).toMatchObject({ attempt: 3, continues: first.decision });
  });

  test("does not count against the attempts a request has to begin", () => {
    const router = fleetOf(2, { maxAttempts: 1 });
    begun(router);
    expect(placed(router.ended("x", { outcome: "failed", continuation: REST }, 2)).attempt).toBe(2);
  });

  test("ends as it did where nobody else is left", () => {
    const router = fleetOf(1);
    begun(router);
    expect(router.ended("x", { outcome: "timedOut", continuation: REST }, 2)).toEqual([]);
    expect(router.accounting).toMatchObject({ timedOut: 1, unfinished: 0 });
  });

  test("waits before everybody else, and takes the place of one who waits where there is none", () => {
    const queue = { maxRequests: 1, maxWaitNs: 1e9 };
    const router = fleetOf(2, { admission: { mode: "queue", watermarks: { batchSlotsFraction: 1 }, queue } }, 1);
    const { replica } = begun(router, "x", { deadlineNs: 1 });
    begun(router, "busy");
    expect(router.offer({ id: "waiting", ...prompt(1), priority: 1e6 }, 2)).toMatchObject([{ kind: "hold" }]);
    // The worker that was lost is gone, or whoever waits would be given its place.
    router.setState(replica, "down", 3);
    expect(router.ended("x", { outcome: "failed", continuation: REST }, 3)).toMatchObject([
      { kind: "hold", request: "x" },
      { kind: "shed", request: "waiting" },
    ]);
    expect(placed(router.ended("busy", { outcome: "completed" }, 4)).request).toBe("x");
  });
});

describe("a replica on trial", () => {
  test("takes so many requests more than it had, whatever admission says", () => {
    for (const mode of ["queue", "engine"] as const) {
      const router = fleetOf(2, { admission: { mode } });
      for (let i = 0; i < 4; i++) router.offer({ id: `before-${i}`, ...prompt(1) }, 0);
      router.setTrials(1, 1);
      for (let i = 0; i < 4; i++) router.offer({ id: `after-${i}`, ...prompt(1) }, 1);
      expect([...router.load.columns.inFlight.subarray(0, 2)]).toEqual([5, 3]);
      expect(router.log.latest(1)[0].filtered.busy).toEqual(["worker-1"]);
      router.setTrials(1, undefined);
      for (let i = 0; i < 4; i++) router.offer({ id: `proven-${i}`, ...prompt(1) }, 2);
      expect(router.load.columns.inFlight[1]).toBe(5);
    }
  });

  test("does not hide that the others are overloaded", () => {
    const admission = { mode: "shed", watermarks: { batchSlotsFraction: 1 } } as const;
    const router = fleetOf(2, { admission }, 1);
    router.setTrials(1, 0);
    router.offer({ id: "a", ...prompt(1) }, 0);
    expect(router.offer({ id: "b", ...prompt(1) }, 1)).toMatchObject([
      { kind: "shed", reason: { code: "overloaded", knob: "batchSlotsFraction" } },
    ]);
  });

  test("leaves its limit behind when it leaves", () => {
    const router = fleetOf(1);
    router.setTrials(0, 0);
    router.removeReplica(0, 0);
    router.addReplica({ worker: "another" });
    expect(router.offer({ id: "a", ...prompt(1) }, 1)).toMatchObject([{ kind: "place", replica: 0 }]);
  });
});
