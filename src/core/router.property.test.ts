import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Account } from "./accounts.ts";
import type { AdmissionMode } from "./admission/types.ts";
import type { Effect } from "./effects.ts";
import { hashText, sequenceHashes } from "./hash.ts";
import type { FeedCapabilities, KvEvent, KvEventBody, ReplicaSnapshot, SnapshotRun } from "./kv-index/types.ts";
import { POLICIES, createPolicy } from "./policy/registry.ts";
import type { RoutedRequest } from "./routed-request.ts";
import { Rng } from "./rng.ts";
import { Router } from "./router.ts";

/**
 * A small world around the router: workers with an LRU cache that emit true events, a network that delays, repeats and loses
 * them, and clients whose requests end in every way there is.
 */
const BLOCK_TOKENS = 4;
const CACHE_BLOCKS = 24;
const REPLAYING: FeedCapabilities = { replayDepth: 1e6, snapshot: false };
/** Keeps two events, so that most gaps end in a resync. */
const SNAPSHOTTING: FeedCapabilities = { replayDepth: 2, snapshot: true };
const FORGETFUL: FeedCapabilities = { replayDepth: 0, snapshot: false };

class Worker {
  readonly #cache = new Map<string, Uint32Array>();
  readonly #sent: KvEvent[] = [];
  #incarnation = 0;
  #nextEventId = 0;

  /** Computes a prompt: what is missing is stored, and what does not fit any more is forgotten from its end. */
  compute(sequence: Uint32Array): KvEvent[] {
    const blocks = Math.min(sequence.length / 2, CACHE_BLOCKS);
    const key = (i: number): string => hashText(sequence[2 * i], sequence[2 * i + 1]);
    let hit = 0;
    while (hit < blocks && this.#cache.has(key(hit))) hit++;
    const bodies: KvEventBody[] = [];
    if (hit < blocks) {
      const parent = hit === 0 ? null : sequence.slice(2 * hit - 2, 2 * hit);
      bodies.push({ kind: "stored", parent, engine: sequence.slice(2 * hit, 2 * blocks), local: null });
    }
    for (let i = blocks - 1; i >= 0; i--) {
      this.#cache.delete(key(i));
      this.#cache.set(key(i), sequence.slice(2 * i, 2 * i + 2));
    }
    for (const [oldest, lanes] of this.#cache) {
      if (this.#cache.size <= CACHE_BLOCKS) break;
      this.#cache.delete(oldest);
      bodies.push({ kind: "removed", engine: lanes });
    }
    return bodies.map((body) => this.#emit(body));
  }

  restart(): KvEvent[] {
    this.#cache.clear();
    this.#sent.length = 0;
    this.#incarnation++;
    this.#nextEventId = 0;
    return [this.#emit({ kind: "cleared" })];
  }

  replay(from: number, to: number): KvEvent[] {
    return this.#sent.slice(from, to + 1);
  }

  snapshot(): ReplicaSnapshot {
    const runs = [...this.#cache.values()].map((sequence): SnapshotRun => ({ tier: "device", sequence, engine: null }));
    return { incarnation: `life ${this.#incarnation}`, lastEventId: this.#nextEventId - 1, runs };
  }

  depth(sequence: Uint32Array): number {
    let depth = 0;
    while (2 * depth < sequence.length && this.#cache.has(hashText(sequence[2 * depth], sequence[2 * depth + 1])))
      depth++;
    return depth;
  }

  #emit(body: KvEventBody): KvEvent {
    const event: KvEvent = {
      ...body,
      incarnation: `life ${this.#incarnation}`,
      eventId: this.#nextEventId++,
      tier: "device",
    };
    this.#sent.push(event);
    return event;
  }
}

class World {
  readonly router: Router;
  readonly workers: Worker[] = [];
  readonly running = new Map<string, { request: RoutedRequest; replica: number }>();
  readonly prompts: Uint32Array[] = [];
  readonly #rng: Rng;
  #inFlight: { replica: number; event: KvEvent }[] = [];
  nowNs = 0;
  #nextId = 0;

  constructor(policy: string, mode: AdmissionMode, workers: number, seed: number, feed: FeedCapabilities = REPLAYING) {
    this.#rng = new Rng(seed);
    this.router = new Router(createPolicy(policy, {}), {
      blockTokens: BLOCK_TOKENS,
      maxReplicas: workers,
      maxBlocks: 4096,
      admission: { mode, queue: { maxRequests: 4, maxWaitNs: 50 } },
      expectationNs: 1000,
      seed,
    });
    for (let i = 0; i < workers; i++) {
      this.router.addReplica({ worker: `w${i}`, batchSlots: 3 }, feed);
      this.workers.push(new Worker());
    }
  }

  step(): void {
    this.nowNs += this.#rng.below(5);
    const pick = this.#rng.below(20);
    if (pick < 7) this.#offer();
    else if (pick < 10) this.#progress();
    else if (pick < 14) this.#end();
    else if (pick < 18) this.deliver(this.#rng.below(4));
    else if (pick < 19) this.#carryOut(this.router.tick(this.nowNs));
    else if (this.#rng.below(4) === 0) {
      const replica = this.#rng.below(this.workers.length);
      // With the process its connections are gone, and what was under way on them.
      this.#inFlight = this.#inFlight.filter((sent) => sent.replica !== replica);
      this.#send(replica, this.workers[replica].restart());
    }
  }

  /** Delivers waiting events, the oldest first but for some that swap, repeat or get lost. */
  deliver(count: number, reliably: boolean = false): void {
    for (let i = 0; i < count && this.#inFlight.length > 0; i++) {
      const at = reliably ? 0 : Math.min(this.#inFlight.length - 1, this.#rng.below(3));
      const [{ replica, event }] = this.#inFlight.splice(at, 1);
      if (!reliably && this.#rng.below(10) === 0) continue;
      if (!reliably && this.#rng.below(10) === 0) this.#inFlight.push({ replica, event });
      this.#carryOut(this.router.applyEvent(replica, event, this.nowNs));
    }
  }

  /** Ends every request, delivers every event, and lets every expectation expire. */
  drain(): void {
    for (let round = 0; this.router.accounting.unfinished > 0; round++) {
      if (round > 1000) throw new Error("the world does not come to rest");
      this.#end("completed");
      this.nowNs += 20;
      this.#carryOut(this.router.tick(this.nowNs));
    }
    // One more event of each worker shows the last gap, if there is one.
    this.workers.forEach((worker, replica) => this.#send(replica, worker.compute(Uint32Array.of(replica, 99))));
    for (let round = 0; round < 3; round++) {
      while (this.#inFlight.length > 0) this.deliver(1, true);
      // Long enough for every expectation to expire, and for an answer that was lost to be asked for again.
      this.nowNs += 2e9;
      this.#carryOut(this.router.tick(this.nowNs));
    }
  }

  #offer(): void {
    const topic = this.#rng.below(5);
    const turns = 1 + this.#rng.below(4);
    const tokens = Uint32Array.from(
      { length: BLOCK_TOKENS * 3 * turns },
      (_, i) => topic * 100 + (i < 20 ? 0 : turns) + i,
    );
    const sequence = sequenceHashes(tokens, BLOCK_TOKENS);
    const request = {
      id: `r${this.#nextId++}`,
      promptTokens: tokens.length,
      sequence,
      blocks: sequence.length / 2,
      session: `s${topic}`,
      priority: this.#rng.below(2),
    };
    this.prompts.push(sequence);
    this.#requests.set(request.id, request);
    this.#carryOut(this.router.offer(request, this.nowNs));
  }

  readonly #requests = new Map<string, RoutedRequest>();

  #progress(): void {
    const id = this.#someRunning();
    if (id === undefined) return;
    const { request, replica } = this.running.get(id)!;
    this.#send(replica, this.workers[replica].compute(request.sequence));
    this.#carryOut(this.router.firstToken(id, this.nowNs));
    this.router.grew(id, 1 + this.#rng.below(9), this.nowNs);
  }

  #end(forced?: Account): void {
    const id = this.#someRunning();
    if (id === undefined) return;
    const outcomes = ["completed", "completed", "failed", "rejected", "timedOut", "cancelled"] as const;
    const outcome = forced === "completed" ? forced : outcomes[this.#rng.below(outcomes.length)];
    this.running.delete(id);
    this.#carryOut(this.router.ended(id, { outcome }, this.nowNs));
  }

  #someRunning(): string | undefined {
    return [...this.running.keys()][this.#rng.below(Math.max(1, this.running.size))];
  }

  #send(replica: number, events: readonly KvEvent[]): void {
    for (const event of events) this.#inFlight.push({ replica, event });
  }

  #carryOut(effects: readonly Effect[]): void {
    for (const effect of effects) {
      if (effect.kind === "place") {
        this.running.set(effect.request, { request: this.#requests.get(effect.request)!, replica: effect.replica });
      } else if (effect.kind === "resync") {
        const { replica } = effect;
        this.#carryOut(this.router.restore(replica, this.workers[replica].snapshot(), this.nowNs));
      } else if (effect.kind === "replay") {
        this.#send(effect.replica, this.workers[effect.replica].replay(effect.fromEventId, effect.toEventId));
      }
    }
  }
}

const world = fc.record({
  policy: fc.constantFrom(...POLICIES.map(({ name }) => name)),
  mode: fc.constantFrom<AdmissionMode>("queue", "shed", "engine"),
  workers: fc.integer({ min: 1, max: 5 }),
  seed: fc.integer({ min: 0, max: 1e9 }),
  steps: fc.integer({ min: 1, max: 150 }),
});

describe("Router in a world of true events over a bad network", () => {
  it("accounts for every request exactly once, at every moment", () => {
    fc.assert(
      fc.property(world, ({ policy, mode, workers, seed, steps }) => {
        const small = new World(policy, mode, workers, seed);
        for (let step = 0; step < steps; step++) {
          small.step();
          const { offered, ...ended } = small.router.accounting;
          expect(Object.values(ended).reduce((sum, n) => sum + n, 0)).toBe(offered);
          expect(ended.unfinished).toBe(small.running.size + small.router.queued);
        }
      }),
    );
  });

  it("has released all it reserved once everything has ended", () => {
    fc.assert(
      fc.property(world, ({ policy, mode, workers, seed, steps }) => {
        const small = new World(policy, mode, workers, seed);
        for (let step = 0; step < steps; step++) small.step();
        small.drain();
        const { inFlight, decoding, pendingPrefillTokens, contextTokens, activeBlocks } = small.router.load.columns;
        for (const column of [inFlight, decoding, pendingPrefillTokens, contextTokens, activeBlocks]) {
          expect(column.every((value) => value === 0)).toBe(true);
        }
        expect(small.router.load.size).toBe(0);
      }),
    );
  });

  it.each([
    ["replay", REPLAYING],
    ["snapshots", SNAPSHOTTING],
  ])("knows what the workers hold after the drain, whatever was delayed, repeated or lost, by %s", (_how, feed) => {
    fc.assert(
      fc.property(world, ({ policy, mode, workers, seed, steps }) => {
        const small = new World(policy, mode, workers, seed, feed);
        for (let step = 0; step < steps; step++) small.step();
        small.drain();
        for (const sequence of small.prompts) {
          const { cached, confirmed } = small.router.index.match(sequence, sequence.length / 2);
          const held = small.workers.map((worker) => worker.depth(sequence));
          expect(Array.from(confirmed.subarray(0, workers))).toEqual(held);
          expect(Array.from(cached.subarray(0, workers))).toEqual(held);
        }
      }),
      { numRuns: 200 },
    );
  });

  it("says that it knows only part, where lost events cannot be had again", () => {
    fc.assert(
      fc.property(world, ({ policy, mode, workers, seed, steps }) => {
        const small = new World(policy, mode, workers, seed, FORGETFUL);
        for (let step = 0; step < steps; step++) small.step();
        small.drain();
        for (let replica = 0; replica < workers; replica++) {
          if (small.router.indexState(replica) !== "live") continue;
          for (const sequence of small.prompts) {
            const { confirmed } = small.router.index.match(sequence, sequence.length / 2);
            expect(confirmed[replica]).toBe(small.workers[replica].depth(sequence));
          }
        }
      }),
    );
  });

  it("gives the same decisions to the same workers, in whatever order they joined", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...POLICIES.map(({ name }) => name)),
        fc.shuffledSubarray([0, 1, 2, 3, 4], { minLength: 5 }),
        fc.array(fc.record({ topic: fc.integer({ min: 0, max: 3 }), blocks: fc.integer({ min: 1, max: 12 }) }), {
          minLength: 1,
          maxLength: 30,
        }),
        (policy, order, prompts) => {
          const chosen = [[0, 1, 2, 3, 4], order].map((joining) => {
            const router = new Router(createPolicy(policy, {}), { blockTokens: 4, maxReplicas: 5, maxBlocks: 4096 });
            for (const worker of joining) router.addReplica({ worker: `w${worker}`, kvBlocks: 64 });
            return prompts.map(({ topic, blocks }, i) => {
              const sequence = sequenceHashes(
                Uint32Array.from({ length: blocks * 4 }, (_, k) => topic * 1000 + k),
                4,
              );
              const [effect] = router.offer({ id: `r${i}`, promptTokens: blocks * 4, sequence, blocks }, i);
              return effect.kind === "place" ? router.fleet.name(effect.replica) : effect.kind;
            });
          });
          expect(chosen[1]).toEqual(chosen[0]);
        },
      ),
      { numRuns: 300 },
    );
  });
});
