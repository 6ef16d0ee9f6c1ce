import { beforeEach, describe, expect, it } from "vitest";
import type { Effect, Place } from "./effects.ts";
import { sequenceHashes } from "./hash.ts";
import { createPolicy } from "./policy/registry.ts";
import { explainRecord } from "./record/explain-record.ts";
import type { RoutedRequest } from "./routed-request.ts";
import { Router } from "./router.ts";
import type { RouterOptions } from "./router-options.ts";

const BLOCK_TOKENS = 16;
const MS = 1e6;
const SECOND = 1e9;
const OPTIONS: RouterOptions = { blockTokens: BLOCK_TOKENS, maxReplicas: 8, maxBlocks: 4096 };

/** A prompt of `blocks` blocks whose content is fixed by `topic`. */
function request(id: string, topic: number, blocks: number, more: Partial<RoutedRequest> = {}): RoutedRequest {
  const tokens = Uint32Array.from({ length: blocks * BLOCK_TOKENS }, (_, i) => topic * 1000 + i);
  return { id, promptTokens: tokens.length, sequence: sequenceHashes(tokens, BLOCK_TOKENS), blocks, ...more };
}

function placed(effects: readonly Effect[]): Place {
  const place = effects.find((effect) => effect.kind === "place");
  if (place === undefined) throw new Error(`no placement in ${JSON.stringify(effects)}`);
  return place;
}

/** Nobody waits inside an engine here unless a test says so. */
const FULL_AT_ITS_SLOTS = { batchSlotsFraction: 1 };

function fleet(policy: string, options: Partial<RouterOptions> = {}, workers: number = 3, batchSlots?: number): Router {
  const admission = { mode: "queue", watermarks: FULL_AT_ITS_SLOTS, ...options.admission } as const;
  const router = new Router(createPolicy(policy, {}), { ...OPTIONS, ...options, admission });
  for (let i = 1; i <= workers; i++) {
    const spec = { worker: `worker-${i}`, kvBlocks: 1024, ...(batchSlots === undefined ? {} : { batchSlots }) };
    router.addReplica(spec, { replayDepth: 10, snapshot: false });
  }
  return router;
}

describe("Router", () => {
  let router: Router;

  beforeEach(() => {
    router = fleet("kv-cost");
  });

  it("sends the next turn of a conversation to the worker that was given the last one", () => {
    const first = placed(router.offer(request("a", 1, 20), 0));
    placed(router.offer(request("b", 2, 20), 1));
    router.ended("a", { outcome: "completed" }, 5);
    router.ended("b", { outcome: "completed" }, 6);
    const second = placed(router.offer(request("c", 1, 24), 10));
    expect(second.replica).toBe(first.replica);
    expect(second.predictedCachedTokens).toBe(20 * BLOCK_TOKENS);
  });

  it("believes events over its own expectations", () => {
    const { replica } = placed(router.offer(request("a", 1, 20), 0));
    const { sequence } = request("a", 1, 20);
    const stored = { kind: "stored", parent: null, engine: sequence, local: null } as const;
    router.applyEvent(replica, { ...stored, incarnation: "x", eventId: 0, tier: "device" }, 1);
    expect(router.index.match(sequence, 20).confirmed[replica]).toBe(20);
    expect(router.indexState(replica)).toBe("live");
    const removed = { kind: "removed", engine: sequence.slice(20) } as const;
    router.applyEvent(replica, { ...removed, incarnation: "x", eventId: 1, tier: "device" }, 2);
    expect(router.index.match(sequence, 20).cached[replica]).toBe(10);
  });

  it("passes on what a feed asks for", () => {
    const cleared = { kind: "cleared", incarnation: "x", tier: "device" } as const;
    router.applyEvent(1, { ...cleared, eventId: 0 }, 1);
    const effects = router.applyEvent(1, { ...cleared, eventId: 3 }, 1);
    expect(effects).toEqual([{ kind: "replay", replica: 1, fromEventId: 1, toEventId: 2 }]);
    expect(router.indexState(1)).toBe("stale");
  });

  it("reserves at the decision, so that a burst does not go to one worker", () => {
    const replicas = Array.from({ length: 9 }, (_, i) => placed(router.offer(request(`r${i}`, i, 4), 0)).replica);
    expect([0, 1, 2].map((replica) => replicas.filter((r) => r === replica).length)).toEqual([3, 3, 3]);
  });

  it("tries another worker when one fails before the first token, and then gives up", () => {
    const first = placed(router.offer(request("a", 1, 4), 0));
    const second = placed(router.ended("a", { outcome: "failed" }, 1));
    const third = placed(router.ended("a", { outcome: "rejected" }, 2));
    expect(new Set([first.replica, second.replica, third.replica]).size).toBe(3);
    expect([first.attempt, second.attempt, third.attempt]).toEqual([1, 2, 3]);
    expect(router.ended("a", { outcome: "failed" }, 3)).toEqual([]);
    expect(router.accounting).toMatchObject({ offered: 1, failed: 1, unfinished: 0 });
    const attempts = router.log.attempts("a");
    expect(attempts.map(({ attempt, filtered }) => [attempt, filtered.tried.length])).toEqual([
      [1, 0],
      [2, 1],
      [3, 2],
    ]);
  });

  it("does not send others after a prompt that a worker has refused", () => {
    const first = placed(router.offer(request("a", 1, 10), 0));
    router.ended("a", { outcome: "rejected", mayRetry: false }, 1);
    const second = placed(router.offer(request("b", 1, 10), 2));
    expect(second.predictedCachedTokens).toBe(0);
    expect(second.replica).not.toBe(first.replica);
  });

  it("does not repeat an answer that has begun on a worker that has left since", () => {
    const { replica } = placed(router.offer(request("a", 1, 10), 0));
    router.removeReplica(replica, 1);
    router.firstToken("a", 1);
    expect(router.ended("a", { outcome: "failed" }, 2)).toEqual([]);
    expect(router.isOpen("a")).toBe(false);
  });

  it("refuses what waits when the last worker goes", () => {
    router = fleet("kv-cost", {}, 1, 1);
    router.offer(request("a", 1, 4), 0);
    router.offer(request("b", 2, 4), 0);
    expect(router.setState(0, "down", 1)).toMatchObject([
      { kind: "shed", request: "b", reason: { code: "no-eligible-worker" } },
    ]);
  });

  it("places what waits when output frees its prefill, first-token signal or not", () => {
    const watermarks = { prefillTokens: 64 };
    router = fleet("kv-cost", { admission: { mode: "queue", watermarks } }, 1);
    router.offer(request("a", 1, 4), 0);
    expect(router.offer(request("b", 2, 4), 0)).toEqual([{ kind: "hold", request: "b" }]);
    expect(placed(router.grew("a", 1, 1)).request).toBe("b");
  });

  it("does not repeat a request whose answer has begun", () => {
    router.offer(request("a", 1, 4), 0);
    router.firstToken("a", 1);
    expect(router.ended("a", { outcome: "failed" }, 2)).toEqual([]);
    expect(router.accounting.failed).toBe(1);
  });

  it("holds a request when every worker is full, and places it when one has room", () => {
    router = fleet("kv-cost", {}, 2, 1);
    const first = placed(router.offer(request("a", 1, 4), 0));
    placed(router.offer(request("b", 2, 4), 0));
    expect(router.offer(request("c", 3, 4), 1)).toEqual([{ kind: "hold", request: "c" }]);
    expect(router.queued).toBe(1);
    const place = placed(router.ended("b", { outcome: "completed" }, 9 * MS));
    expect(place.request).toBe("c");
    expect(router.log.get(place.decision)).toMatchObject({
      queueWaitNs: 9 * MS - 1,
      filtered: { busy: [`worker-${first.replica + 1}`] },
    });
  });

  it("lets an engine have one more batch waiting before it holds anything, unless told otherwise", () => {
    const usual = new Router(createPolicy("kv-cost", {}), OPTIONS);
    usual.addReplica({ worker: "worker-1", batchSlots: 2 });
    const kinds = [1, 2, 3, 4, 5].map((n) => usual.offer(request(`r${n}`, n, 4), n)[0].kind);
    expect(kinds).toEqual(["place", "place", "place", "place", "hold"]);
  });

  it("serves higher priorities first and lets nobody slip past a queue", () => {
    router = fleet("kv-cost", {}, 1, 1);
    router.offer(request("a", 1, 4), 0);
    router.offer(request("low", 2, 4), 1);
    router.offer(request("high", 3, 4, { priority: 5 }), 2);
    expect(placed(router.ended("a", { outcome: "completed" }, 3)).request).toBe("high");
    expect(placed(router.ended("high", { outcome: "completed" }, 4)).request).toBe("low");
  });

  it("asks a policy that holds again whenever something has changed", () => {
    let isPatient = true;
    const patient = createPolicy("round-robin", {});
    const waiting = new Router(
      {
        name: "patient",
        parameters: {},
        usesActivePrefix: false,
        choose: (view) => (isPatient && view.mayHold ? { kind: "hold" } : patient.choose(view)),
        explain: (view) => patient.explain(view),
        observe: () => {},
      },
      OPTIONS,
    );
    waiting.addReplica({ worker: "worker-1" });
    expect(waiting.offer(request("a", 1, 4), 0)).toEqual([{ kind: "hold", request: "a" }]);
    expect(waiting.tick(1)).toEqual([]);
    isPatient = false;
    expect(placed(waiting.tick(2)).request).toBe("a");
  });

  it("sheds with reason, knob, value and threshold when admission says so", () => {
    router = fleet("kv-cost", { admission: { mode: "shed" } }, 2, 1);
    router.offer(request("a", 1, 4), 0);
    router.offer(request("b", 2, 4), 0);
    const [effect] = router.offer(request("c", 3, 4), 1);
    expect(effect).toMatchObject({
      kind: "shed",
      request: "c",
      reason: { code: "overloaded", knob: "batchSlotsFraction", value: 1, threshold: 1 },
    });
    expect(router.accounting).toMatchObject({ offered: 3, shed: 1, unfinished: 2 });
  });

  it("keeps a record of a refusal too", () => {
    router = fleet("kv-cost", { admission: { mode: "shed" } }, 2, 1);
    for (const id of ["a", "b", "c"]) router.offer(request(id, 1, 4), 0);
    expect(router.log.attempts("c")).toMatchObject([
      { chosen: null, filtered: { busy: ["worker-1", "worker-2"] }, refusal: { code: "overloaded" } },
    ]);
  });

  it("gives a retried request back to the worker that failed it when no other is left", () => {
    router = fleet("kv-cost", {}, 2, 1);
    const first = placed(router.offer(request("x", 1, 4), 0));
    placed(router.offer(request("y", 2, 4), 0));
    expect(router.ended("x", { outcome: "failed" }, 1)).toEqual([{ kind: "hold", request: "x" }]);
    router.removeReplica(1 - first.replica, 2);
    expect(placed(router.tick(3))).toMatchObject({ request: "x", replica: first.replica, attempt: 2 });
  });

  it("writes nothing down for a request it cannot digest", () => {
    expect(() => router.offer({ ...request("a", 1, 4), promptTokens: 1.5 }, 0)).toThrow(/promptTokens/);
    expect(() => router.offer({ ...request("a", 1, 4), blocks: 5 }, 0)).toThrow(/blocks is 5/);
    expect(router.accounting.offered).toBe(0);
    placed(router.offer(request("a", 1, 4), 0));
  });

  it("does not take a prompt that was still being computed for one that was forgotten", () => {
    router = new Router(createPolicy("kv-cost", {}), OPTIONS);
    const replica = router.addReplica({ worker: "opaque", kvBlocks: 100 });
    for (const id of ["a", "b"]) router.offer(request(id, 1, 50), 0);
    for (const id of ["a", "b"]) router.ended(id, { outcome: "completed", cachedTokens: 0 }, 1);
    expect(router.index.match(request("x", 1, 50).sequence, 50).cached[replica]).toBe(50);
  });

  it("passes everything on when admission is left to the engines", () => {
    router = fleet("kv-cost", { admission: { mode: "engine" } }, 2, 1);
    for (const id of ["a", "b", "c", "d"]) placed(router.offer(request(id, 1, 4), 0));
    expect(router.accounting.unfinished).toBe(4);
  });

  it("sheds what waits past its deadline or the queue's patience, on a tick", () => {
    router = fleet(
      "kv-cost",
      { admission: { mode: "queue", queue: { maxRequests: 9, maxWaitNs: 10 * SECOND } } },
      1,
      1,
    );
    router.offer(request("a", 1, 4), 0);
    router.offer(request("soon", 2, 4, { deadlineNs: SECOND }), 0);
    router.offer(request("later", 3, 4), 0);
    expect(router.tick(0.9 * SECOND)).toEqual([]);
    expect(router.tick(SECOND)).toMatchObject([{ kind: "shed", request: "soon", reason: { code: "deadline" } }]);
    expect(router.tick(10 * SECOND)).toMatchObject([{ request: "later", reason: { code: "queue-timeout" } }]);
    expect(router.accounting).toMatchObject({ shed: 2, unfinished: 1 });
  });

  it("refuses what a full queue cannot take, the lowest priority first", () => {
    router = fleet("kv-cost", { admission: { mode: "queue", queue: { maxRequests: 1, maxWaitNs: SECOND } } }, 1, 1);
    router.offer(request("a", 1, 4), 0);
    router.offer(request("low", 2, 4), 0);
    expect(router.offer(request("equal", 3, 4), 0)).toMatchObject([{ kind: "shed", reason: { code: "queue-full" } }]);
    const effects = router.offer(request("high", 4, 4, { priority: 1 }), 0);
    expect(effects).toMatchObject([
      { kind: "hold", request: "high" },
      { kind: "shed", request: "low", reason: { code: "queue-full" } },
    ]);
  });

  it("has no worker to offer when none is ready", () => {
    router = fleet("kv-cost", {}, 1);
    router.setState(0, "draining", 0);
    expect(router.offer(request("a", 1, 4), 0)).toMatchObject([{ reason: { code: "no-eligible-worker" } }]);
    router.setState(0, "ready", 0);
    placed(router.offer(request("b", 1, 4), 0));
  });

  it("cancels a request that waits", () => {
    router = fleet("kv-cost", {}, 1, 1);
    router.offer(request("a", 1, 4), 0);
    router.offer(request("b", 2, 4), 0);
    router.ended("b", { outcome: "cancelled" }, 1);
    expect(router.queued).toBe(0);
    expect(router.accounting).toMatchObject({ offered: 2, cancelled: 1, unfinished: 1 });
  });

  it("forgets a worker's cache and load when it leaves, and retries its requests elsewhere", () => {
    const { replica } = placed(router.offer(request("a", 1, 20), 0));
    router.removeReplica(replica, 1);
    expect(router.index.stats().blocks).toBe(0);
    const again = placed(router.ended("a", { outcome: "failed" }, 1));
    expect(again.replica).not.toBe(replica);
    router.ended("a", { outcome: "completed" }, 2);
    expect(router.load.size).toBe(0);
  });

  it("bounds what it believes of a worker without events by the worker's KV size", () => {
    router = new Router(createPolicy("kv-cost", {}), OPTIONS);
    const replica = router.addReplica({ worker: "opaque", kvBlocks: 30 });
    expect(router.indexState(replica)).toBe("approximate");
    for (const topic of [1, 2, 3]) {
      router.offer(request(`r${topic}`, topic, 20), topic);
      router.ended(`r${topic}`, { outcome: "completed" }, topic);
    }
    expect(router.index.match(request("x", 3, 20).sequence, 20).cached[replica]).toBe(20);
    expect(router.index.match(request("x", 2, 20).sequence, 20).cached[replica]).toBe(10);
    expect(router.index.match(request("x", 1, 20).sequence, 20).cached[replica]).toBe(0);
  });

  it("expects of a worker without events the answers that it was heard to give, and of others what their events say", () => {
    const withAnswer = request("a", 1, 24);
    const kept = { sequence: withAnswer.sequence, blocks: withAnswer.blocks };
    const nextTurn = request("b", 1, 30);
    const predicted = (feed?: { replayDepth: number; snapshot: boolean }): number => {
      const own = new Router(createPolicy("kv-cost", {}), OPTIONS);
      own.addReplica({ worker: "worker-1", kvBlocks: 1024 }, feed);
      placed(own.offer(request("a", 1, 20), 0));
      own.firstToken("a", MS);
      own.ended("a", { outcome: "completed", kept }, SECOND);
      return placed(own.offer(nextTurn, 2 * SECOND)).predictedCachedTokens;
    };
    expect(predicted()).toBe(24 * BLOCK_TOKENS);
    expect(predicted({ replayDepth: 10, snapshot: false })).toBe(20 * BLOCK_TOKENS);
  });

  it("keeps of a worker without events what others have computed, whoever else is cancelled", () => {
    const own = new Router(createPolicy("kv-cost", {}), OPTIONS);
    own.addReplica({ worker: "worker-1", kvBlocks: 1024 });
    placed(own.offer(request("first", 1, 20), 0));
    placed(own.offer(request("second", 1, 16), 1));
    own.firstToken("second", MS);
    own.ended("second", { outcome: "completed" }, 2 * MS);
    own.ended("first", { outcome: "cancelled" }, 3 * MS);
    expect(placed(own.offer(request("third", 1, 30), 4 * MS)).predictedCachedTokens).toBe(16 * BLOCK_TOKENS);
  });

  it("keeps what it has learned of a worker's cache when the worker says the same again", () => {
    const own = new Router(createPolicy("kv-cost", {}), OPTIONS);
    const replica = own.addReplica({ worker: "worker-1" });
    const report = { running: 0, waiting: 0, kvUsage: 0, kvBlocks: 100 };
    own.report(replica, report, 0);
    const predicted = (id: string, topic: number, cachedTokens: number, nowNs: number): number => {
      const place = placed(own.offer(request(id, topic, 50), nowNs));
      own.firstToken(id, nowNs);
      own.ended(id, { outcome: "completed", cachedTokens }, nowNs);
      own.report(replica, report, nowNs);
      return place.predictedCachedTokens;
    };
    predicted("a", 1, 0, 1);
    predicted("b", 2, 0, 2);
    // Both fit into what it says; it had forgotten the first.
    expect(predicted("c", 1, 0, 3)).toBeGreaterThan(0);
    predicted("d", 2, 49 * BLOCK_TOKENS, 4);
    expect(predicted("e", 1, 0, 5)).toBeLessThan(49 * BLOCK_TOKENS);
  });

  it("learns from reported cached tokens that a worker without events keeps less than it should", () => {
    router = new Router(createPolicy("kv-cost", {}), OPTIONS);
    const replica = router.addReplica({ worker: "opaque", kvBlocks: 100 });
    router.offer(request("a", 1, 50), 0);
    router.ended("a", { outcome: "completed", cachedTokens: 0 }, 1);
    const { decision } = placed(router.offer(request("b", 1, 50), 2));
    router.ended("b", { outcome: "completed", cachedTokens: 10 * BLOCK_TOKENS }, 3);
    expect(router.log.get(decision)).toMatchObject({ predictedCachedTokens: 799, observedCachedTokens: 160 });
    expect(router.index.match(request("x", 1, 50).sequence, 50).cached[replica]).toBe(45);
  });

  it("keeps a full record from which the policy recomputes the very same decision", () => {
    router = fleet("kv-cost", { records: { detail: "full", capacity: 100 } });
    router.offer(request("a", 1, 20), 0);
    const { decision, replica } = placed(router.offer(request("b", 1, 24), 1));
    router.firstToken("b", 7 * MS + 1);
    const record = router.log.get(decision);
    expect(record).toMatchObject({
      request: "b",
      chosen: `worker-${replica + 1}`,
      firstTokenNs: 7 * MS,
      candidateCount: 3,
    });
    const explained = explainRecord(record!);
    const costs = explained.explanation!.candidates.map(({ cost }) => cost);
    expect(explained.candidates!.map((candidate) => candidate.replica)).toEqual(["worker-1", "worker-2", "worker-3"]);
    // 4 blocks to prefill and 20 held by the first request, against 24 to prefill on an idle worker: a tie is not luck.
    expect(costs.filter((cost) => cost === 24)).toHaveLength(3);
    expect(record!.tied).toBe(3);
  });

  it("keeps the summaries when newer records have taken the rows", () => {
    router = fleet("round-robin", { records: { detail: "full", capacity: 100, candidateRows: 7 } });
    for (let i = 0; i < 5; i++) router.offer(request(`r${i}`, i, 4), i);
    expect(router.log.latest(9).map((record) => record.candidates?.length)).toEqual([
      3,
      3,
      undefined,
      undefined,
      undefined,
    ]);
  });

  it("changes the policy while requests are in flight", () => {
    router.offer(request("a", 1, 20), 0);
    router.setPolicy(createPolicy("kv-cost", { form: "dynamo" }));
    placed(router.offer(request("b", 1, 20), 1));
    router.ended("a", { outcome: "completed" }, 2);
    router.ended("b", { outcome: "completed" }, 2);
    router.setPolicy(createPolicy("round-robin", {}));
    placed(router.offer(request("c", 1, 20), 3));
    expect(router.accounting).toMatchObject({ completed: 2, unfinished: 1 });
  });

  it("begins nothing after its deadline, whatever makes room for it", () => {
    router = fleet("round-robin", {}, 1, 1);
    placed(router.offer(request("a", 1, 4), 0));
    router.offer(request("b", 2, 4, { deadlineNs: SECOND }), 1);
    const effects = router.ended("a", { outcome: "completed" }, SECOND + 90 * MS);
    expect(effects).toMatchObject([{ kind: "shed", request: "b", reason: { code: "deadline" } }]);
  });

  it("says how long a request might wait by the rules it came under", () => {
    router = fleet("round-robin", { admission: { mode: "queue", queue: { maxRequests: 9, maxWaitNs: SECOND } } }, 1, 1);
    placed(router.offer(request("a", 1, 4), 0));
    router.offer(request("b", 2, 4), 0);
    const queue = { maxRequests: 9, maxWaitNs: 60 * SECOND };
    const admission = { mode: "queue", watermarks: FULL_AT_ITS_SLOTS, queue } as const;
    router.setRules({ admission, maxAttempts: 1, inactivityNs: 600 * SECOND }, 1);
    expect(router.tick(1.1 * SECOND)).toMatchObject([{ reason: { value: 1.1 * SECOND, threshold: SECOND } }]);
    const late = router.offer(request("c", 3, 4, { deadlineNs: SECOND }), 2 * SECOND);
    expect(late).toMatchObject([{ kind: "shed", reason: { code: "deadline", threshold: 0 } }]);
  });

  it("records a refusal with the refused request's own data", () => {
    router = fleet("round-robin", { admission: { mode: "shed" } }, 1, 1);
    placed(router.offer(request("a", 1, 4, { session: "alice", maxOutputTokens: 7 }), 0));
    const [shed] = router.offer(request("b", 2, 4, { session: "bob", maxOutputTokens: 70 }), 1);
    const [refused, before] = router.log.latest(2);
    expect(shed).toMatchObject({ kind: "shed", decision: refused.decision });
    expect(refused.expectedOutputTokens).toBe(70);
    expect(refused.sessionKey).not.toBe(before.sessionKey);
    expect(refused.chance).not.toBe(before.chance);
  });

  it("lets a replica prove itself by one request at a time, whatever else ends there", () => {
    router = fleet("round-robin", {}, 1, 100);
    for (let i = 0; i < 5; i++) placed(router.offer(request(`old-${i}`, i, 4), i));
    router.setTrials(0, 1);
    placed(router.offer(request("trial", 10, 4), 10));
    for (let i = 0; i < 5; i++) router.ended(`old-${i}`, { outcome: "completed" }, 20);
    expect(router.offer(request("next", 11, 4), 30)).toMatchObject([{ kind: "hold" }]);
    expect(placed(router.ended("trial", { outcome: "completed" }, 40))).toMatchObject({ request: "next" });
  });

  it("refuses what it could not keep books of before it writes anything down", () => {
    for (const wrong of [{ promptTokens: 2 ** 60 }, { deadlineNs: Number.NaN }]) {
      expect(() => router.offer(request("a", 1, 4, wrong), 0)).toThrow(/request a/);
    }
    placed(router.offer(request("b", 1, 4), 0));
    const continuation = { promptTokens: 64, sequence: new Uint32Array(0), blocks: 4 };
    expect(() => router.ended("b", { outcome: "failed", continuation }, 1)).toThrow(/request b/);
    router.ended("b", { outcome: "completed" }, 2);
    expect(router.accounting).toMatchObject({ offered: 1, completed: 1, unfinished: 0 });
  });

  it("changes its rules while requests wait: they are placed where there is room by the new ones", () => {
    router = fleet("round-robin", {}, 1, 1);
    placed(router.offer(request("a", 1, 4), 0));
    expect(router.offer(request("b", 2, 4), 1)).toMatchObject([{ kind: "hold" }]);
    const queue = { maxRequests: 1, maxWaitNs: SECOND };
    const admission = { mode: "queue", watermarks: { batchSlotsFraction: 2 }, queue } as const;
    const effects = router.setRules({ admission, maxAttempts: 1, inactivityNs: 600 * SECOND }, 2);
    expect(placed(effects)).toMatchObject({ request: "b" });
    expect(router.offer(request("c", 3, 4), 3)).toMatchObject([{ kind: "hold" }]);
    expect(router.offer(request("d", 4, 4), 4)).toMatchObject([{ kind: "shed", reason: { code: "queue-full" } }]);
    router.ended("a", { outcome: "failed" }, 5);
    expect(router.accounting).toMatchObject({ failed: 1, shed: 1, unfinished: 2 });
  });

  it("refuses a second request with the same id", () => {
    router.offer(request("a", 1, 4), 0);
    expect(() => router.offer(request("a", 1, 4), 1)).toThrow(/already open/);
  });

  it("counts a stuck request as load no longer, yet keeps it in the books", () => {
    router = fleet("kv-cost", { inactivityNs: 60 * SECOND });
    router.offer(request("a", 1, 4), 0);
    router.tick(61 * SECOND);
    expect(router.load.size).toBe(0);
    expect(router.accounting.unfinished).toBe(1);
    router.ended("a", { outcome: "timedOut" }, 70 * SECOND);
    expect(router.accounting).toMatchObject({ timedOut: 1, unfinished: 0 });
  });
});
