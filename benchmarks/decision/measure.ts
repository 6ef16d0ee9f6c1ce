/**
 * Times routing decisions in a process of its own: an 8,000-token prompt that is already tokenized, 64-token blocks. The clock
 * covers hashing, matching, choosing, reserving, expecting and the full record: all that `offer` does. Ends and events run
 * between decisions, off the clock.
 */
import { performance } from "node:perf_hooks";
import type { KvEventBody } from "../../src/core/kv-index/types.ts";
import { NO_IDENTITY, ROOT_HI, ROOT_LO, chainHashes, hashBlocks } from "../../src/core/hash.ts";
import { createPolicy } from "../../src/core/policy/registry.ts";
import { Rng } from "../../src/core/rng.ts";
import { Router } from "../../src/core/router.ts";

export interface DecisionRequest {
  readonly workers: number;
  readonly policy: string;
  readonly parameters: Record<string, string | number>;
  readonly decisions: number;
}

export interface DecisionTimes {
  /** In the order of the decisions, which is the same, with the same work in each, in every process. */
  readonly decisionsUs: readonly number[];
  /** A loop that only counts, about as long as a decision and timed as often: what the machine itself puts between. */
  readonly countingUs: readonly number[];
}

const PROMPT_TOKENS = 8_000;
const BLOCK_TOKENS = 64;
const BLOCKS = PROMPT_TOKENS / BLOCK_TOKENS;
const SHARED_BLOCKS = 16;
const SESSIONS = 400;
const CACHE_BLOCKS = 16_384;
const WARM_UP = 3_000;
const COUNTING_TURNS = 15_000;

/** What was counted; kept so that no compiler finds the counting useless. */
let counted = 0;

function measure({ workers, policy, parameters, decisions }: DecisionRequest): DecisionTimes {
  const router = new Router(createPolicy(policy, parameters), {
    blockTokens: BLOCK_TOKENS,
    maxReplicas: workers,
    maxBlocks: 1 << 18,
    records: { detail: "full", capacity: 10_000 },
  });
  const engines = Array.from({ length: workers }, (_, i) => {
    const spec = { worker: `worker-${i}`, batchSlots: 256, kvBlocks: CACHE_BLOCKS };
    return new Engine(router, router.addReplica(spec, { replayDepth: 0, snapshot: false }));
  });
  const rng = new Rng(7);
  const prompts = sessionPrompts(rng);
  const inFlight: string[] = [];
  const decisionsUs: number[] = [];
  const countingUs: number[] = [];
  for (let i = 0; i < WARM_UP + decisions; i++) {
    const session = rng.below(SESSIONS);
    const id = `request-${i}`;
    const nowNs = i * 1_000_000;
    const start = performance.now();
    const sequence = new Uint32Array(2 * BLOCKS);
    hashBlocks(prompts[session], PROMPT_TOKENS, BLOCK_TOKENS, NO_IDENTITY, sequence);
    chainHashes(sequence, BLOCKS, ROOT_LO, ROOT_HI, sequence);
    const [effect] = router.offer({ id, promptTokens: PROMPT_TOKENS, sequence, blocks: BLOCKS }, nowNs);
    const elapsedUs = (performance.now() - start) * 1000;
    if (i >= WARM_UP) decisionsUs.push(rounded(elapsedUs));
    if (effect.kind !== "place") throw new Error(`not placed: ${effect.kind}`);
    engines[effect.replica].compute(session, sequence, nowNs);
    router.firstToken(id, nowNs);
    router.grew(id, 100, nowNs);
    inFlight.push(id);
    const oldest = inFlight.length > workers * 8 ? inFlight.shift() : undefined;
    if (oldest !== undefined) router.ended(oldest, { outcome: "completed" }, nowNs);
    const turnsUs = count();
    if (i >= WARM_UP) countingUs.push(rounded(turnsUs));
  }
  return { decisionsUs, countingUs };
}

/** Microseconds that a fixed number of turns takes, without memory and without a branch that could be guessed wrong. */
function count(): number {
  const start = performance.now();
  let value = start | 0;
  for (let turn = 0; turn < COUNTING_TURNS; turn++) value = Math.imul(value ^ turn, 0x9e3779b1);
  const elapsedUs = (performance.now() - start) * 1000;
  counted ^= value;
  return elapsedUs;
}

function rounded(us: number): number {
  return Math.round(us * 100) / 100;
}

/** A worker's cache by whole sessions, least recently used out first, and the events that tell the router. */
class Engine {
  readonly #router: Router;
  readonly #replica: number;
  readonly #held = new Map<number, Uint32Array>();
  #eventId = 0;

  constructor(router: Router, replica: number) {
    this.#router = router;
    this.#replica = replica;
  }

  compute(session: number, sequence: Uint32Array, nowNs: number): void {
    const isNew = !this.#held.delete(session);
    this.#held.set(session, sequence);
    if (!isNew) return;
    const first = this.#held.size === 1 ? 0 : SHARED_BLOCKS;
    const parent = first === 0 ? null : sequence.slice(2 * first - 2, 2 * first);
    this.#emit({ kind: "stored", parent, engine: sequence.slice(2 * first), local: null }, nowNs);
    if (this.#held.size * (BLOCKS - SHARED_BLOCKS) <= CACHE_BLOCKS) return;
    const [oldest, lost] = this.#held.entries().next().value ?? [-1, sequence];
    this.#held.delete(oldest);
    this.#emit({ kind: "removed", engine: lost.slice(2 * SHARED_BLOCKS) }, nowNs);
  }

  #emit(body: KvEventBody, nowNs: number): void {
    const event = { ...body, incarnation: "bench", eventId: this.#eventId++, tier: "device" } as const;
    this.#router.applyEvent(this.#replica, event, nowNs);
  }
}

/** Prompts of sessions that share their first 1,024 tokens and go separate ways after them. */
function sessionPrompts(rng: Rng): Uint32Array[] {
  const shared = Uint32Array.from({ length: SHARED_BLOCKS * BLOCK_TOKENS }, () => rng.below(150_000));
  return Array.from({ length: SESSIONS }, () => {
    const tokens = Uint32Array.from({ length: PROMPT_TOKENS }, () => rng.below(150_000));
    tokens.set(shared);
    return tokens;
  });
}

const request = JSON.parse(process.argv[2]) as DecisionRequest;
process.stdout.write(`${JSON.stringify(measure(request))}\n`);
