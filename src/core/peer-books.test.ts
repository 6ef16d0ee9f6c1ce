import { describe, expect, test } from "vitest";
import { PeerBooks, type PeerNews } from "./peer-books.ts";
import { createPolicy } from "./policy/registry.ts";
import { Router } from "./router.ts";

const SEQUENCE = Uint32Array.of(1, 2, 3, 4);

function placed(request: string, replica = "a"): PeerNews {
  return { kind: "placed", request, replica, promptTokens: 32, cachedTokens: 16, sequence: SEQUENCE };
}

function fixture(maxReplicas = 2): { router: Router; books: PeerBooks } {
  const router = new Router(createPolicy("least-loaded"), { blockTokens: 16, maxReplicas, maxBlocks: 1024 });
  router.addReplica({ worker: "a" }, { replayDepth: 0, snapshot: true });
  router.addReplica({ worker: "b" }, { replayDepth: 0, snapshot: true });
  return { router, books: new PeerBooks(router) };
}

describe("books of what peers have placed", () => {
  test("a peer's request is load from its placement to its end", () => {
    const { router, books } = fixture();
    books.hear("other", placed("1"), 0);
    expect(router.load.columns.inFlight[0]).toBe(1);
    expect(router.load.columns.pendingPrefillTokens[0]).toBe(16);
    books.hear("other", { kind: "first-token", request: "1" }, 1);
    expect(router.load.columns.pendingPrefillTokens[0]).toBe(0);
    books.hear("other", { kind: "grew", request: "1", tokens: 5 }, 2);
    expect(router.load.columns.contextTokens[0]).toBe(37);
    books.hear("other", { kind: "ended", request: "1" }, 3);
    expect(router.load.columns.inFlight[0]).toBe(0);
    expect(books.size).toBe(0);
  });

  test("its prompt is expected where it was placed, and its load keeps others away", () => {
    const { router, books } = fixture();
    books.hear("other", placed("1"), 0);
    expect(router.index.match(SEQUENCE, 2).cached[0]).toBe(2);
    const [effect] = router.offer({ id: "own", promptTokens: 32, sequence: Uint32Array.of(9, 9), blocks: 1 }, 1);
    expect(effect).toMatchObject({ kind: "place", replica: 1 });
  });

  test("what a peer has heard answered is expected of a worker without events, and of no other", () => {
    const { router, books } = fixture(3);
    const silent = router.addReplica({ worker: "c", kvBlocks: 100 });
    const kept = Uint32Array.of(1, 2, 3, 4, 5, 6);
    for (const replica of ["a", "c"]) {
      books.hear("other", placed(replica, replica), 0);
      books.hear("other", { kind: "first-token", request: replica }, 1);
      books.hear("other", { kind: "ended", request: replica, kept }, 2);
    }
    expect(router.index.match(kept, 3).cached[0]).toBe(2);
    expect(router.index.match(kept, 3).cached[silent]).toBe(3);
  });

  test("ids of peers are nobody else's", () => {
    const { router, books } = fixture();
    router.offer({ id: "1", promptTokens: 32, sequence: SEQUENCE, blocks: 2 }, 0);
    books.hear("other", placed("1"), 0);
    books.hear("third", placed("1"), 0);
    expect(router.load.size).toBe(3);
    books.hear("other", { kind: "ended", request: "1" }, 1);
    expect(router.load.size).toBe(2);
  });

  test("a retry moves it, and news of what was never heard of changes nothing", () => {
    const { router, books } = fixture();
    books.hear("other", placed("1", "a"), 0);
    books.hear("other", placed("1", "b"), 1);
    expect([...router.load.columns.inFlight]).toEqual([0, 1]);
    books.hear("other", { kind: "ended", request: "unknown" }, 2);
    books.hear("other", placed("2", "nobody"), 2);
    expect(router.load.size).toBe(1);
  });

  test("a retry on a worker that is not known here is no longer where it was", () => {
    const { router, books } = fixture();
    books.hear("other", placed("1", "a"), 0);
    books.hear("other", placed("1", "nobody"), 1);
    expect([router.load.size, books.inFlight("other")]).toEqual([0, 0]);
  });

  test("numbers beyond all reason leave the books as exact as they were", () => {
    const { router, books } = fixture();
    books.hear("other", placed("1"), 0);
    const before = structuredClone(router.load.columns);
    const { MAX_SAFE_INTEGER } = Number;
    books.hear("mad", { ...placed("1"), promptTokens: MAX_SAFE_INTEGER, cachedTokens: 0 } as PeerNews, 1);
    books.hear("mad", placed("2"), 1);
    books.hear("mad", { kind: "grew", request: "2", tokens: MAX_SAFE_INTEGER }, 2);
    books.hear("mad", { kind: "ended", request: "1" }, 3);
    books.hear("mad", { kind: "ended", request: "2" }, 3);
    expect(router.load.columns).toEqual(before);
  });

  test("news of an end that was lost is made up for by what a peer says it still has", () => {
    const { router, books } = fixture();
    for (const request of ["1", "2", "3"]) books.hear("other", placed(request), 0);
    books.hear("third", placed("1"), 0);
    books.keepOnly("other", ["2", "4"], 1);
    expect([books.inFlight("other"), books.inFlight("third"), router.load.size]).toEqual([1, 1, 2]);
    expect([books.knows("other", "1"), books.knows("other", "2")]).toEqual([false, true]);
  });

  test("a peer that is gone takes its load with it", () => {
    const { router, books } = fixture();
    books.hear("other", placed("1"), 0);
    books.hear("other", placed("2"), 0);
    books.hear("third", placed("1"), 0);
    books.forget("other", 1);
    expect(router.load.size).toBe(1);
  });
});
