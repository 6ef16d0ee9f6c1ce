import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ROOT_HI, ROOT_LO, chainHashes, hashText } from "../../src/core/hash.ts";
import { KvIndex } from "../../src/core/kv-index/kv-index.ts";
import { NaiveIndex } from "../../src/core/kv-index/naive-index.ts";
import type { KvEventBody, KvEvidence, SnapshotRun } from "../../src/core/kv-index/types.ts";
import { Rng, mixPair } from "../../src/core/rng.ts";
import { TIERS, type Tier } from "../../src/core/replica.ts";

/**
 * Random event streams on a small tree of prompts, applied to the paged index and to the naive one. Paths come from few
 * symbols, so that prompts share prefixes, part inside pages and meet again.
 */
const REPLICAS = 6;
const SECOND = 1e9;

type Path = readonly number[];

const pathOf = fc.array(fc.integer({ min: 0, max: 1 }), { minLength: 1, maxLength: 5 }).chain((turns) =>
  // Each turn is a run of blocks, so that a path is a few long stretches rather than noise.
  fc
    .array(fc.integer({ min: 1, max: 14 }), { minLength: turns.length, maxLength: turns.length })
    .map((lengths): Path => {
      const path: number[] = [];
      turns.forEach((turn, i) => {
        for (let k = 0; k < lengths[i]; k++) path.push(k === 0 ? 10 + turn : 7);
      });
      return path;
    }),
);

function localsOf(path: Path): Uint32Array {
  const local = new Uint32Array(2 * path.length);
  path.forEach((symbol, i) => local.set([mixPair(symbol, 1), mixPair(symbol, 2)], 2 * i));
  return local;
}

function sequenceOf(path: Path): Uint32Array {
  const sequence = new Uint32Array(2 * path.length);
  chainHashes(localsOf(path), path.length, ROOT_LO, ROOT_HI, sequence);
  return sequence;
}

/** Engine hashes of the even replicas are secrets of their own; the odd ones speak our sequence hashes. */
const isOpaque = (replica: number): boolean => replica % 2 === 0;

function engineOf(replica: number, sequence: Uint32Array): Uint32Array {
  return isOpaque(replica) ? sequence.map((lane, i) => mixPair(lane ^ (replica * 7919), i & 1)) : sequence.slice();
}

function storedEvent(replica: number, path: Path, from: number, to: number): KvEventBody {
  const engine = engineOf(replica, sequenceOf(path));
  return {
    kind: "stored",
    parent: from === 0 ? null : engine.slice(2 * from - 2, 2 * from),
    engine: engine.slice(2 * from, 2 * to),
    local: isOpaque(replica) ? localsOf(path).slice(2 * from, 2 * to) : null,
  };
}

function removedEvent(replica: number, path: Path, from: number, to: number, reversed: boolean): KvEventBody {
  const engine = engineOf(replica, sequenceOf(path));
  const picked: number[] = [];
  for (let i = from; i < to; i++) {
    const at = 2 * (reversed ? to - 1 - (i - from) : i);
    picked.push(engine[at], engine[at + 1]);
  }
  return { kind: "removed", engine: Uint32Array.from(picked) };
}

type Operation =
  | { op: "stored" | "removed"; replica: number; tier: Tier; path: Path; a: number; b: number; reversed: boolean }
  | { op: "cleared"; replica: number; tier: Tier }
  | { op: "expect"; replica: number; path: Path }
  | { op: "retract"; replica: number; path: Path; a: number; b: number }
  | { op: "approximate"; replica: number; kvBlocks: number }
  | { op: "correct"; replica: number; predicted: number; observed: number }
  | { op: "advance"; seconds: number }
  | { op: "drop" | "copy"; replica: number };

const replicaOf = fc.integer({ min: 0, max: REPLICAS - 1 });
const tierOf = fc.constantFrom<Tier>("device", "device", "device", "host");
const unit = fc.double({ min: 0, max: 1, noNaN: true });

function operations(approximate: boolean): fc.Arbitrary<Operation> {
  const change = (op: "stored" | "removed"): fc.Arbitrary<Operation> =>
    fc.record({
      op: fc.constant(op),
      replica: replicaOf,
      tier: tierOf,
      path: pathOf,
      a: unit,
      b: unit,
      reversed: fc.boolean(),
    });
  return fc.oneof(
    { weight: 10, arbitrary: change("stored") },
    { weight: 6, arbitrary: change("removed") },
    { weight: 4, arbitrary: fc.record({ op: fc.constant("expect" as const), replica: replicaOf, path: pathOf }) },
    {
      weight: 1,
      arbitrary: fc.record({ op: fc.constant("retract" as const), replica: replicaOf, path: pathOf, a: unit, b: unit }),
    },
    { weight: 1, arbitrary: fc.record({ op: fc.constant("cleared" as const), replica: replicaOf, tier: tierOf }) },
    {
      weight: 2,
      arbitrary: fc.record({ op: fc.constant("advance" as const), seconds: fc.integer({ min: 0, max: 20 }) }),
    },
    { weight: 1, arbitrary: fc.record({ op: fc.constantFrom("drop" as const, "copy" as const), replica: replicaOf }) },
    {
      weight: approximate ? 1 : 0,
      arbitrary: fc.record({
        op: fc.constant("approximate" as const),
        replica: fc.constantFrom(1, 3),
        kvBlocks: fc.integer({ min: 1, max: 60 }),
      }),
    },
    {
      weight: approximate ? 1 : 0,
      arbitrary: fc.record({
        op: fc.constant("correct" as const),
        replica: replicaOf,
        predicted: fc.integer({ min: 0, max: 20 }),
        observed: fc.integer({ min: 0, max: 20 }),
      }),
    },
  );
}

/** Applies one operation to several indexes alike; returns the new time. */
function apply(indexes: readonly KvEvidence[], operation: Operation, nowNs: number): number {
  for (const index of indexes) {
    switch (operation.op) {
      case "stored": {
        // Any stretch of the path: one that starts behind blocks nobody stored leaves a hole, or has an unknown parent.
        const [from, to] = stretch(operation.path, operation.a, operation.b);
        index.apply(operation.replica, operation.tier, storedEvent(operation.replica, operation.path, from, to));
        break;
      }
      case "removed": {
        const [from, to] = stretch(operation.path, operation.a, operation.b);
        const event = removedEvent(operation.replica, operation.path, from, to, operation.reversed);
        index.apply(operation.replica, operation.tier, event);
        break;
      }
      case "cleared":
        index.apply(operation.replica, operation.tier, { kind: "cleared" });
        break;
      case "expect":
        index.expect(operation.replica, sequenceOf(operation.path), operation.path.length, nowNs);
        break;
      case "retract": {
        const [from, to] = stretch(operation.path, operation.a, operation.b);
        index.retract(operation.replica, sequenceOf(operation.path), from, Math.min(to, operation.path.length));
        break;
      }
      case "approximate":
        index.setApproximate(operation.replica, operation.kvBlocks);
        break;
      case "correct":
        index.correct(operation.replica, operation.predicted, operation.observed);
        break;
      case "advance":
        index.expire(nowNs + operation.seconds * SECOND);
        break;
      case "drop":
        index.clearReplica(operation.replica);
        break;
      case "copy":
        index.restore(operation.replica, index.snapshot(operation.replica));
        break;
    }
  }
  return operation.op === "advance" ? nowNs + operation.seconds * SECOND : nowNs;
}

function stretch(path: Path, a: number, b: number): [number, number] {
  const from = Math.floor(Math.min(a, b) * path.length);
  // Half of all stretches start at the root, as most real ones do.
  return [a < 0.5 ? 0 : from, Math.max(from + 1, Math.ceil(Math.max(a, b) * path.length))];
}

function pathsIn(script: readonly Operation[]): Path[] {
  return script.flatMap((operation) => ("path" in operation ? [operation.path] : []));
}

function depths(index: KvEvidence, sequence: Uint32Array): string {
  const { cached, confirmed } = index.match(sequence, sequence.length / 2);
  return `${cached.join()} confirmed ${confirmed.join()}`;
}

function held(runs: readonly SnapshotRun[]): string[] {
  return runs
    .flatMap(({ tier, sequence, engine }) =>
      Array.from({ length: sequence.length / 2 }, (_, i) => {
        const own = engine === null ? "own" : hashText(engine[2 * i], engine[2 * i + 1]);
        return `${tier} ${hashText(sequence[2 * i], sequence[2 * i + 1])} ${own}`;
      }),
    )
    .sort();
}

describe("KvIndex", () => {
  it("agrees with the naive index on every prompt after any stream of events", () => {
    fc.assert(
      fc.property(
        fc.array(operations(true), { minLength: 10, maxLength: 40, size: "max" }),
        fc.boolean(),
        (script, hasSparseTable) => {
          const naive = new NaiveIndex({ maxReplicas: REPLICAS });
          const paged = new KvIndex({ maxReplicas: REPLICAS, maxBlocks: 1 << 14, maxAliases: 1 << 13, hasSparseTable });
          let nowNs = 0;
          for (const operation of script) {
            nowNs = apply([naive, paged], operation, nowNs);
            for (const path of pathsIn(script)) {
              const sequence = sequenceOf(path);
              const want = depths(naive, sequence);
              const got = depths(paged, sequence);
              // Compared as text first: an assertion per prompt and step would take most of the time.
              if (got !== want) expect(got).toBe(want);
            }
            expect(paged.stats().blocks).toBe(naive.blocks);
          }
          for (let replica = 0; replica < REPLICAS; replica++) {
            expect(held(paged.snapshot(replica))).toEqual(held(naive.snapshot(replica)));
          }
        },
      ),
      { numRuns: 150 },
    );
  });

  it("leaves nothing behind when every replica has gone", () => {
    fc.assert(
      fc.property(fc.array(operations(true), { minLength: 1, maxLength: 60 }), fc.boolean(), (script, small) => {
        const paged = new KvIndex({
          maxReplicas: REPLICAS,
          maxBlocks: small ? 128 : 1 << 14,
          maxAliases: small ? 40 : 4096,
        });
        let nowNs = 0;
        for (const operation of script) nowNs = apply([paged], operation, nowNs);
        for (let replica = 0; replica < REPLICAS; replica++) paged.clearReplica(replica);
        expect(paged.stats()).toMatchObject({ blocks: 0, pages: 0, chunks: 0, aliases: 0, expectations: 0 });
      }),
      { numRuns: 150 },
    );
  });

  // Only confirmed evidence: with the alias of a forgotten page gone, a removal cannot end an expectation; time will.
  it("only ever forgets under its cap: it confirms nothing that the naive index does not", () => {
    fc.assert(
      fc.property(fc.array(operations(false), { minLength: 20, maxLength: 80 }), (script) => {
        const naive = new NaiveIndex({ maxReplicas: REPLICAS });
        const paged = new KvIndex({
          maxReplicas: REPLICAS,
          maxBlocks: 96,
          maxAliases: 64,
          maxChunks: 1,
          maxExpectations: 20,
        });
        let nowNs = 0;
        for (const operation of script) {
          nowNs = apply([naive, paged], operation, nowNs);
          const { pages, maxPages, aliases, expectations } = paged.stats();
          expect(pages).toBeLessThanOrEqual(maxPages);
          expect(aliases).toBeLessThanOrEqual(64);
          expect(expectations).toBeLessThanOrEqual(20);
          for (const path of pathsIn(script)) {
            const sequence = sequenceOf(path);
            const most = naive.match(sequence, path.length);
            const got = paged.match(sequence, path.length);
            expect(got.confirmed.every((depth, lane) => depth <= most.confirmed[lane])).toBe(true);
          }
        }
      }),
      { numRuns: 150 },
    );
  });

  it("keeps the prefixes that are asked for when it must forget others", () => {
    const index = new KvIndex({ maxReplicas: 1, maxBlocks: 64 * 16 });
    const hot = sequenceOf(Array.from({ length: 40 }, () => 1));
    index.apply(0, "device", { kind: "stored", parent: null, engine: hot, local: null });
    for (let cold = 0; cold < 200; cold++) {
      const sequence = sequenceOf(Array.from({ length: 32 }, (_, i) => 100 + cold * 50 + i));
      index.apply(0, "device", { kind: "stored", parent: null, engine: sequence, local: null });
      expect(index.match(hot, 40).cached[0]).toBe(40);
    }
    expect(index.stats().evictedPages).toBeGreaterThan(100);
    expect(index.stats().pages).toBeLessThanOrEqual(64);
  });

  it("gives device lanes the numbers of their replicas, and further tiers lanes of their own", () => {
    const index = new KvIndex({ maxReplicas: 3, maxBlocks: 256 });
    const prompt = sequenceOf([1, 2, 3]);
    index.apply(2, "device", { kind: "stored", parent: null, engine: prompt.slice(0, 2), local: null });
    index.apply(2, "host", { kind: "stored", parent: null, engine: prompt, local: null });
    expect(Array.from(index.match(prompt, 3).confirmed.subarray(0, 6))).toEqual([0, 0, 1, 0, 0, 3]);
  });

  it.each([1, 2, 3, 4])("agrees over a long stream with many replicas on every tier (seed %i)", (seed) => {
    const lanes = { maxReplicas: 24 };
    const naive = new NaiveIndex(lanes);
    const paged = new KvIndex({
      ...lanes,
      maxBlocks: 1 << 14,
      maxChunks: 1 << 12,
      maxCopies: 1 << 13,
      maxAliases: 1 << 15,
    });
    const stream = new Stream(seed, lanes.maxReplicas);
    for (let step = 0; step < 800; step++) {
      stream.apply([naive, paged]);
      if (step % 20 > 0) continue;
      for (const prompt of stream.prompts) expect(depths(paged, prompt)).toBe(depths(naive, prompt));
      expect(paged.stats().blocks).toBe(naive.blocks);
    }
    for (let replica = 0; replica < lanes.maxReplicas; replica++) paged.clearReplica(replica);
    expect(paged.stats()).toMatchObject({ blocks: 0, pages: 0, chunks: 0, aliases: 0, expectations: 0 });
  });

  it.each([1, 2, 3, 4, 5, 6, 7, 8])("confirms nothing untrue when every table is far too small (seed %i)", (seed) => {
    const lanes = { maxReplicas: 24 };
    const naive = new NaiveIndex(lanes);
    const small = { maxBlocks: 256, maxAliases: 300, maxChunks: 4, maxExpectations: 64, maxCopies: 8 };
    const paged = new KvIndex({ ...lanes, ...small });
    const stream = new Stream(seed, lanes.maxReplicas);
    for (let step = 0; step < 1500; step++) {
      stream.apply([naive, paged]);
      if (step % 20 > 0) continue;
      for (const prompt of stream.prompts) {
        const most = naive.match(prompt, prompt.length / 2).confirmed;
        const got = paged.match(prompt, prompt.length / 2).confirmed;
        expect(got.every((depth, lane) => depth <= most[lane])).toBe(true);
      }
    }
    expect(paged.stats().evictedPages).toBeGreaterThan(0);
    for (let replica = 0; replica < lanes.maxReplicas; replica++) paged.clearReplica(replica);
    expect(paged.stats()).toMatchObject({ blocks: 0, pages: 0, chunks: 0, aliases: 0, expectations: 0 });
  });

  it("is not misled by an engine that stores the same tokens under two hashes", () => {
    const index = new KvIndex({ maxReplicas: 1, maxBlocks: 256, maxAliases: 256 });
    const rename = (hashes: Uint32Array, salt: number): Uint32Array => hashes.map((lane) => mixPair(lane, salt));
    for (let topic = 0; topic < 400; topic++) {
      const path = [topic, topic + 1, topic + 2];
      const prompt = sequenceOf(path);
      const [one, other] = [rename(prompt, 1), rename(prompt, 2)];
      index.apply(0, "device", { kind: "stored", parent: null, engine: one, local: localsOf(path) });
      index.apply(0, "device", { kind: "stored", parent: null, engine: other, local: localsOf(path) });
      expect(index.match(prompt, 3).confirmed[0]).toBe(3);
      index.apply(0, "device", { kind: "removed", engine: one });
      expect(index.match(prompt, 3).confirmed[0]).toBe(3);
      index.apply(0, "device", { kind: "removed", engine: other });
      expect(index.match(prompt, 3).confirmed[0]).toBe(0);
      // The first name outlived its block; it must not stand for whatever takes the block's place.
      const stray = { kind: "stored", parent: one.slice(4), engine: rename(prompt, 3), local: localsOf(path) } as const;
      index.apply(0, "device", stray);
      expect(index.stats().blocks).toBe(0);
    }
  });
});

/** A long seeded stream of operations on a tree of prompts, for what short random scripts do not reach. */
class Stream {
  readonly prompts: readonly Uint32Array[];
  readonly #paths: readonly Path[];
  readonly #rng: Rng;
  readonly #replicas: number;
  #nowNs = 0;

  constructor(seed: number, replicas: number) {
    this.#rng = new Rng(seed);
    this.#replicas = replicas;
    const paths: number[][] = [];
    for (let i = 0; i < 16; i++) {
      const base = i > 0 && this.#rng.below(4) > 0 ? paths[this.#rng.below(paths.length)] : [];
      const added = Array.from({ length: 1 + this.#rng.below(40) }, () => this.#rng.below(1e6));
      paths.push([...base.slice(0, this.#rng.below(base.length + 1)), ...added].slice(0, 80));
    }
    this.#paths = paths;
    this.prompts = paths.map(sequenceOf);
  }

  apply(indexes: readonly KvEvidence[]): void {
    const rng = this.#rng;
    const replica = rng.below(this.#replicas);
    const path = this.#paths[rng.below(this.#paths.length)];
    const tier = rng.below(6) > 1 ? "device" : TIERS[rng.below(TIERS.length)];
    const change = { replica, tier, path, a: rng.uniform(), b: rng.uniform(), reversed: rng.below(2) === 0 };
    const pick = rng.below(100);
    const seconds = rng.below(20);
    let operation: Operation;
    if (pick < 45) operation = { op: "stored", ...change };
    else if (pick < 80) operation = { op: "removed", ...change };
    else if (pick < 90) operation = { op: "expect", replica, path };
    else if (pick < 93) operation = { op: "retract", ...change };
    else if (pick < 96) operation = { op: "advance", seconds };
    else if (pick < 97) operation = { op: "cleared", replica, tier };
    else operation = { op: pick < 98 ? "drop" : "copy", replica };
    this.#nowNs = apply(indexes, operation, this.#nowNs);
  }
}
