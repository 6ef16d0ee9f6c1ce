import { NS_PER_SECOND, type Nanoseconds } from "../clock.ts";
import { ROOT_HI, ROOT_LO, chainHashes, hashText } from "../hash.ts";
import { TIERS, type Tier } from "../replica.ts";
import { CapacityEstimates } from "./capacity-estimates.ts";
import type { KvEventBody, KvEvidence, Match, SnapshotRun } from "./types.ts";

interface NaiveBlock {
  readonly lo: number;
  readonly hi: number;
  /** Copies by lane. */
  readonly confirmed: Map<number, number>;
}

/**
 * The KV index in plain maps, one entry per block and lane: what `KvIndex` must agree with in every property test, and
 * the baseline of its benchmark. It has no cap.
 */
export class NaiveIndex implements KvEvidence {
  readonly maxReplicas: number;
  readonly #expectationNs: Nanoseconds;
  readonly #blocks = new Map<string, NaiveBlock>();
  /** Expiry by block, per lane; a Map keeps insertion order, which is recency here. */
  readonly #expected: Map<string, Nanoseconds>[] = [];
  readonly #aliases: Map<string, string>[] = [];
  /** The same the other way round. */
  readonly #names: Map<string, Set<string>>[] = [];
  readonly #capacities: CapacityEstimates;

  constructor(options: { maxReplicas: number; expectationNs?: Nanoseconds }) {
    this.maxReplicas = options.maxReplicas;
    this.#expectationNs = options.expectationNs ?? 30 * NS_PER_SECOND;
    this.#capacities = new CapacityEstimates(options.maxReplicas);
    for (let lane = 0; lane < options.maxReplicas * TIERS.length; lane++) this.#expected.push(new Map());
    for (let replica = 0; replica < options.maxReplicas; replica++) {
      this.#aliases.push(new Map());
      this.#names.push(new Map());
    }
  }

  /** Distinct blocks that some lane holds. */
  get blocks(): number {
    const held = new Set<string>();
    for (const [key, block] of this.#blocks) if (block.confirmed.size > 0) held.add(key);
    for (const lane of this.#expected) for (const key of lane.keys()) held.add(key);
    return held.size;
  }

  setApproximate(replica: number, kvBlocks: number): void {
    this.#capacities.set(replica, kvBlocks);
    this.#shrink(replica);
  }

  expect(replica: number, sequence: Uint32Array, blocks: number, nowNs: Nanoseconds): void {
    const expected = this.#expected[replica];
    const isApproximate = this.#capacities.isApproximate(replica);
    const expiresNs = isApproximate ? Infinity : nowNs + this.#expectationNs;
    for (let step = 0; step < blocks; step++) {
      // Only where capacity decides what is forgotten must a prompt's first blocks be the most recent.
      const i = isApproximate ? blocks - 1 - step : step;
      const key = hashText(sequence[2 * i], sequence[2 * i + 1]);
      if (this.#blocks.get(key)?.confirmed.has(replica) === true) continue;
      expected.delete(key);
      expected.set(key, expiresNs);
    }
    this.#shrink(replica);
  }

  retract(replica: number, sequence: Uint32Array, from: number, to: number): void {
    for (let i = from; i < to; i++) this.#expected[replica].delete(hashText(sequence[2 * i], sequence[2 * i + 1]));
  }

  apply(replica: number, tier: Tier, event: KvEventBody): void {
    const lane = TIERS.indexOf(tier) * this.maxReplicas + replica;
    if (event.kind === "stored") this.#stored(replica, lane, event);
    else if (event.kind === "removed") this.#removed(replica, lane, event.engine);
    else this.#clearLane(replica, lane);
  }

  correct(replica: number, predicted: number, observed: number): void {
    if (!this.#capacities.isApproximate(replica)) return;
    this.#capacities.learn(replica, predicted, observed, this.#expected[replica].size);
    this.#shrink(replica);
  }

  match(sequence: Uint32Array, blocks: number): Match {
    const lanes = this.maxReplicas * TIERS.length;
    const cached = new Int32Array(lanes);
    const confirmed = new Int32Array(lanes);
    for (let depth = 0; depth < blocks; depth++) {
      const key = hashText(sequence[2 * depth], sequence[2 * depth + 1]);
      const block = this.#blocks.get(key);
      let reached = false;
      for (let lane = 0; lane < lanes; lane++) {
        if (cached[lane] !== depth) continue;
        const sure = block?.confirmed.has(lane) === true;
        if (!sure && !this.#expected[lane].has(key)) continue;
        cached[lane]++;
        reached = true;
        if (sure && confirmed[lane] === depth) confirmed[lane]++;
      }
      if (!reached) break;
    }
    return { cached, confirmed };
  }

  expire(nowNs: Nanoseconds): void {
    for (let replica = 0; replica < this.maxReplicas; replica++) {
      for (const [key, expiresNs] of this.#expected[replica]) {
        if (expiresNs <= nowNs) this.#expected[replica].delete(key);
      }
    }
  }

  clearReplica(replica: number): void {
    for (let tier = 0; tier < TIERS.length; tier++) this.#clearLane(replica, tier * this.maxReplicas + replica);
    this.#capacities.reset(replica);
  }

  snapshot(replica: number): SnapshotRun[] {
    const engineOf = new Map<string, string>();
    for (const [engine, key] of this.#aliases[replica]) engineOf.set(key, engine);
    const runs: SnapshotRun[] = [];
    for (const [key, block] of this.#blocks) {
      for (const lane of block.confirmed.keys()) {
        if (lane % this.maxReplicas !== replica) continue;
        const engine = engineOf.get(key);
        runs.push({
          tier: TIERS[Math.floor(lane / this.maxReplicas)],
          sequence: Uint32Array.of(block.lo, block.hi),
          engine: engine === undefined ? null : lanesOf(engine),
        });
      }
    }
    return runs;
  }

  restore(replica: number, runs: readonly SnapshotRun[]): void {
    for (let tier = 0; tier < TIERS.length; tier++) this.#clearLane(replica, tier * this.maxReplicas + replica);
    for (const run of runs) {
      const lane = TIERS.indexOf(run.tier) * this.maxReplicas + replica;
      this.#confirm(replica, lane, run.sequence, run.engine);
    }
  }

  #stored(replica: number, lane: number, event: KvEventBody & { kind: "stored" }): void {
    if (event.local === null) {
      this.#confirm(replica, lane, event.engine, null);
      return;
    }
    let parent: Uint32Array = Uint32Array.of(ROOT_LO, ROOT_HI);
    if (event.parent !== null) {
      const key = this.#aliases[replica].get(hashText(event.parent[0], event.parent[1]));
      if (key === undefined) return;
      parent = lanesOf(key);
    }
    const sequence = new Uint32Array(event.local.length);
    chainHashes(event.local, event.local.length / 2, parent[0], parent[1], sequence);
    this.#confirm(replica, lane, sequence, event.engine);
  }

  #confirm(replica: number, lane: number, sequence: Uint32Array, engine: Uint32Array | null): void {
    for (let i = 0; i < sequence.length; i += 2) {
      const key = hashText(sequence[i], sequence[i + 1]);
      let block = this.#blocks.get(key);
      if (block === undefined) {
        block = { lo: sequence[i], hi: sequence[i + 1], confirmed: new Map() };
        this.#blocks.set(key, block);
      }
      block.confirmed.set(lane, (block.confirmed.get(lane) ?? 0) + 1);
      this.#expected[lane].delete(key);
      if (engine !== null) this.#name(replica, hashText(engine[i], engine[i + 1]), key);
    }
  }

  #removed(replica: number, lane: number, engine: Uint32Array): void {
    for (let i = 0; i < engine.length; i += 2) {
      const engineKey = hashText(engine[i], engine[i + 1]);
      const key = this.#aliases[replica].get(engineKey) ?? engineKey;
      this.#expected[lane].delete(key);
      const block = this.#blocks.get(key);
      const copies = block?.confirmed.get(lane);
      if (block === undefined || copies === undefined) continue;
      if (copies > 1) block.confirmed.set(lane, copies - 1);
      else this.#unconfirm(replica, lane, key, block);
    }
  }

  #clearLane(replica: number, lane: number): void {
    this.#expected[lane].clear();
    for (const [key, block] of this.#blocks) {
      if (block.confirmed.has(lane)) this.#unconfirm(replica, lane, key, block);
    }
  }

  #unconfirm(replica: number, lane: number, key: string, block: NaiveBlock): void {
    block.confirmed.delete(lane);
    if (block.confirmed.size === 0) this.#blocks.delete(key);
    for (const other of block.confirmed.keys()) if (other % this.maxReplicas === replica) return;
    for (const engine of this.#names[replica].get(key) ?? []) this.#aliases[replica].delete(engine);
    this.#names[replica].delete(key);
  }

  #name(replica: number, engine: string, key: string): void {
    this.#aliases[replica].set(engine, key);
    const names = this.#names[replica].get(key) ?? new Set();
    this.#names[replica].set(key, names.add(engine));
  }

  #shrink(replica: number): void {
    const expected = this.#expected[replica];
    for (const key of expected.keys()) {
      if (expected.size <= this.#capacities.of(replica)) return;
      expected.delete(key);
    }
  }
}

function lanesOf(text: string): Uint32Array {
  return Uint32Array.of(Number.parseInt(text.slice(8), 16), Number.parseInt(text.slice(0, 8), 16));
}
