import { NS_PER_MS, type Nanoseconds } from "../../src/core/clock.ts";
import type { Effect, Place } from "../../src/core/effects.ts";
import { fullBlocks, hashText, sequenceHashes } from "../../src/core/hash.ts";
import type { Accounting } from "../../src/core/accounts.ts";
import { requestRecord, type RequestRecord, type RequestRecordFields } from "../../src/core/request-record.ts";
import type { Router } from "../../src/core/router.ts";
import { ConstantSpeedEngine } from "../../src/worker/constant-speed-engine.ts";
import type { EngineListener } from "../../src/worker/engine.ts";
import { promptTokens } from "../../src/workload/prompt-content.ts";
import { promptOf } from "../../src/workload/prompt.ts";
import type { WorkloadRequest, WorkloadSource } from "../../src/workload/request.ts";
import { VirtualTimers } from "./virtual-timers.ts";

const VOCABULARY_TOKENS = 32_000;
const TICK_NS = 100 * NS_PER_MS;

export interface VirtualFleetOptions {
  readonly workers: number;
  readonly blockTokens: number;
  readonly kvBlocks: number;
  readonly batchSlots: number;
  readonly prefillUsPerToken: number;
  readonly decodeMsPerToken: number;
  /** How late the router hears of a change in a cache. */
  readonly eventDelayNs: Nanoseconds;
  readonly seed: number;
}

/** What became of a workload. */
export interface VirtualRun {
  readonly records: readonly RequestRecord[];
  readonly accounting: Accounting;
  readonly endNs: Nanoseconds;
  /** Share of prompt tokens that a cache without end or place would have held. */
  readonly cacheCeiling: number;
}

interface UnderWay {
  readonly request: WorkloadRequest;
  readonly tokens: Uint32Array;
  readonly chunkTimesNs: number[];
  fields: RequestRecordFields;
}

/** A fleet in virtual time: carries out what the router says and tells it what comes of it, as a gateway does. */
export class VirtualFleet {
  readonly #timers = new VirtualTimers();
  readonly #underWay = new Map<string, UnderWay>();
  readonly #records: RequestRecord[] = [];
  readonly #engines: ConstantSpeedEngine[] = [];
  readonly #everCached = new Set<string>();
  readonly #router: Router;
  readonly #source: WorkloadSource;
  readonly #options: VirtualFleetOptions;
  #repeatedTokens = 0;
  #promptTokens = 0;

  constructor(router: Router, source: WorkloadSource, options: VirtualFleetOptions) {
    this.#router = router;
    this.#source = source;
    this.#options = options;
    const { kvBlocks, batchSlots, eventDelayNs } = options;
    for (let i = 0; i < options.workers; i++) {
      const feed = { replayDepth: 0, snapshot: false };
      const replica = router.addReplica({ worker: `worker-${i + 1}`, kvBlocks, batchSlots }, feed);
      this.#engines[replica] = new ConstantSpeedEngine({
        ...options,
        timers: this.#timers,
        incarnation: "1",
        publish: (event) =>
          this.#timers.at(this.#nowNs + eventDelayNs, () =>
            this.#carryOut(router.applyEvent(replica, event, this.#nowNs)),
          ),
      });
    }
  }

  /** Runs the workload to its end. */
  run(): VirtualRun {
    this.#timers.at(TICK_NS, () => this.#tick());
    for (
      let dueNs = this.#source.nextDueNs();
      dueNs < Infinity || this.#underWay.size > 0;
      dueNs = this.#source.nextDueNs()
    ) {
      if (this.#timers.nextNs <= dueNs) this.#timers.runNext();
      else {
        this.#timers.advanceTo(dueNs);
        this.#offer(this.#source.take());
      }
    }
    const { accounting } = this.#router;
    const cacheCeiling = this.#repeatedTokens / this.#promptTokens;
    return { records: this.#records, accounting, endNs: this.#nowNs, cacheCeiling };
  }

  get #nowNs(): Nanoseconds {
    return this.#timers.nowNs();
  }

  #tick(): void {
    this.#carryOut(this.#router.tick(this.#nowNs));
    this.#timers.at(this.#nowNs + TICK_NS, () => this.#tick());
  }

  #offer(request: WorkloadRequest): void {
    const { seed, blockTokens } = this.#options;
    const id = `request-${request.id}`;
    const tokens = promptTokens(request.prompt, seed, VOCABULARY_TOKENS);
    const sequence = sequenceHashes(tokens, blockTokens);
    const blocks = fullBlocks(tokens.length, blockTokens);
    let repeated = 0;
    while (repeated < blocks && this.#everCached.has(hashText(sequence[2 * repeated], sequence[2 * repeated + 1])))
      repeated++;
    this.#repeatedTokens += Math.min(repeated * blockTokens, tokens.length - 1);
    this.#promptTokens += tokens.length;
    const { sessionName: session, turn, arrivalNs: intendedNs } = request;
    const fields = { id, session, turn, intendedNs, sentNs: this.#nowNs, promptTokens: tokens.length };
    this.#underWay.set(id, { request, tokens, chunkTimesNs: [], fields: { ...fields, account: "unfinished" } });
    const routed = { id, session, promptTokens: tokens.length, sequence, blocks };
    this.#carryOut(this.#router.offer(routed, this.#nowNs));
  }

  #carryOut(effects: readonly Effect[]): void {
    for (const effect of effects) {
      if (effect.kind === "place") this.#place(effect);
      else if (effect.kind === "shed") this.#settle(effect.request, { account: "shed", shedReason: effect.reason });
    }
  }

  #place({ request: id, replica, decision, attempt, predictedCachedTokens }: Place): void {
    const underWay = this.#underWay.get(id);
    if (underWay === undefined) return;
    const { request, tokens, chunkTimesNs } = underWay;
    const answer = promptOf([{ id: request.answerId, tokens: request.outputTokens }]);
    const answerTokens = promptTokens(answer, this.#options.seed, VOCABULARY_TOKENS);
    underWay.fields = {
      ...underWay.fields,
      placedNs: this.#nowNs,
      worker: this.#router.fleet.name(replica),
      decision: String(decision),
      attempts: attempt,
      predictedCachedTokens,
    };
    const listener: EngineListener = {
      refused: (reason) => {
        throw new Error(`the engine refuses ${id}: ${reason}`);
      },
      grew: (more) => {
        if (chunkTimesNs.length === 0) this.#carryOut(this.#router.firstToken(id, this.#nowNs));
        chunkTimesNs.push(this.#nowNs);
        this.#router.grew(id, more, this.#nowNs);
      },
      finished: (cachedTokens) => {
        this.#remember(tokens, answerTokens);
        this.#settle(id, { account: "completed", observedCachedTokens: cachedTokens });
        this.#carryOut(this.#router.ended(id, { outcome: "completed", cachedTokens }, this.#nowNs));
      },
    };
    this.#router.sent(id, this.#nowNs);
    this.#engines[replica].submit({ promptTokens: tokens, answerTokens, hasEndToken: false }, listener);
  }

  #settle(id: string, end: Partial<RequestRecordFields>): void {
    const underWay = this.#underWay.get(id);
    if (underWay === undefined) return;
    this.#underWay.delete(id);
    const { fields, chunkTimesNs, request } = underWay;
    const isCompleted = end.account === "completed";
    this.#records.push(
      requestRecord({
        ...fields,
        ...end,
        endNs: this.#nowNs,
        firstByteNs: chunkTimesNs[0],
        firstContentNs: chunkTimesNs[0],
        lastContentNs: chunkTimesNs.at(-1),
        outputTokens: chunkTimesNs.length,
        tokenTimes: { form: "chunks", timesNs: Float64Array.from(chunkTimesNs) },
      }),
    );
    this.#source.ended(request, { nowNs: this.#nowNs, completed: isCompleted });
  }

  #remember(tokens: Uint32Array, answerTokens: Uint32Array): void {
    const sequence = sequenceHashes(Uint32Array.from([...tokens, ...answerTokens]), this.#options.blockTokens);
    for (let i = 0; i < sequence.length; i += 2) this.#everCached.add(hashText(sequence[i], sequence[i + 1]));
  }
}
