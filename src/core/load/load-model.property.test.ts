import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LoadModel } from "./load-model.ts";

const REPLICAS = 3;
const BLOCK_TOKENS = 16;
const INACTIVITY_NS = 50;

interface Live {
  readonly id: string;
  readonly replica: number;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  outputTokens: number;
  decoding: boolean;
  lastActivityNs: number;
}

const which = fc.nat({ max: 9 });
const operation = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("reserve" as const),
      replica: fc.nat({ max: REPLICAS - 1 }),
      promptTokens: fc.nat({ max: 200 }),
      cachedShare: fc.double({ min: 0, max: 1, noNaN: true }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("sent" as const), which }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("firstToken" as const), which }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("grew" as const), which, tokens: fc.nat({ max: 40 }) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("ended" as const), which }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("wait" as const), ns: fc.nat({ max: 40 }) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("expire" as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("replace" as const), replica: fc.nat({ max: REPLICAS - 1 }) }),
  },
);

type Operation = typeof operation extends fc.Arbitrary<infer Value> ? Value : never;

function freshModel(): LoadModel {
  const model = new LoadModel({ maxReplicas: REPLICAS, blockTokens: BLOCK_TOKENS, inactivityNs: INACTIVITY_NS });
  for (let replica = 0; replica < REPLICAS; replica++) model.addReplica(replica, { worker: `worker-${replica}` });
  return model;
}

/** The columns of a replica, added up anew from the requests that are in flight on it. */
function recount(live: readonly Live[], replica: number): object {
  const here = live.filter((request) => request.replica === replica);
  const sum = (of: (request: Live) => number): number => here.reduce((total, request) => total + of(request), 0);
  return {
    inFlight: here.length,
    decoding: sum((request) => (request.decoding ? 1 : 0)),
    pendingPrefillTokens: sum((request) => (request.decoding ? 0 : request.promptTokens - request.cachedTokens)),
    contextTokens: sum((request) => (request.decoding ? request.promptTokens + request.outputTokens : 0)),
    activeBlocks: sum((request) => Math.ceil((request.promptTokens + request.outputTokens) / BLOCK_TOKENS)),
  };
}

const ZERO = { inFlight: 0, decoding: 0, pendingPrefillTokens: 0, contextTokens: 0, activeBlocks: 0 };

/** The load model beside a plain list of requests; `apply` returns what was answered and what should have been. */
class Comparison {
  readonly model: LoadModel = freshModel();
  /** In the order of last activity, which is that of expiry. */
  live: Live[] = [];
  nowNs = 0;
  #placed = 0;

  apply(step: Operation): { actual: unknown; expected: unknown } {
    const { model, nowNs } = this;
    if (step.kind === "reserve") {
      const { replica, promptTokens } = step;
      const cachedTokens = Math.floor(promptTokens * step.cachedShare);
      const id = `request-${this.#placed++}`;
      this.live.push({
        id,
        replica,
        promptTokens,
        cachedTokens,
        outputTokens: 0,
        decoding: false,
        lastActivityNs: nowNs,
      });
      return { actual: model.reserve(nowNs, id, replica, promptTokens, cachedTokens), expected: undefined };
    }
    if (step.kind === "expire") {
      const expected = this.#forget((request) => nowNs - request.lastActivityNs >= INACTIVITY_NS);
      return { actual: model.expire(nowNs), expected };
    }
    if (step.kind === "replace") {
      const expected = this.#forget((request) => request.replica === step.replica).toSorted();
      const actual = model.removeReplica(step.replica).toSorted();
      model.addReplica(step.replica, { worker: `worker-${step.replica}` });
      return { actual, expected };
    }
    if (step.kind === "wait") {
      this.nowNs += step.ns;
      return { actual: undefined, expected: undefined };
    }
    const [request] = this.live.splice(step.which, 1) as (Live | undefined)[];
    const id = request?.id ?? "unknown";
    if (step.kind === "ended") return { actual: model.ended(nowNs, id)?.outputTokens, expected: request?.outputTokens };
    if (request !== undefined) this.live.push(request);
    return { actual: this.#signal(step, id), expected: this.#expectSignal(step, request) };
  }

  #signal(step: Operation, id: string): unknown {
    if (step.kind === "firstToken") return this.model.firstToken(this.nowNs, id)?.prefillTokens;
    if (step.kind === "grew") return this.model.grew(this.nowNs, id, step.tokens)?.firstToken?.prefillTokens;
    return this.model.sent(this.nowNs, id);
  }

  #expectSignal(step: Operation, request: Live | undefined): number | undefined {
    if (request === undefined) return undefined;
    request.lastActivityNs = this.nowNs;
    const tokens = step.kind === "grew" ? step.tokens : 0;
    request.outputTokens += tokens;
    const isFirst = !request.decoding && (step.kind === "firstToken" || tokens > 0);
    if (isFirst) request.decoding = true;
    return isFirst ? request.promptTokens - request.cachedTokens : undefined;
  }

  #forget(isGone: (request: Live) => boolean): string[] {
    const gone = this.live.filter((request) => isGone(request)).map((request) => request.id);
    this.live = this.live.filter((request) => !gone.includes(request.id));
    return gone;
  }
}

const endings: Record<string, (comparison: Comparison) => void> = {
  end: ({ model, live, nowNs }) => {
    for (const request of live) model.ended(nowNs, request.id);
  },
  expire: ({ model, nowNs }) => {
    model.expire(nowNs + INACTIVITY_NS);
  },
  remove: ({ model }) => {
    for (let replica = 0; replica < REPLICAS; replica++) {
      model.removeReplica(replica);
      model.addReplica(replica, { worker: `worker-${replica}` });
    }
  },
};

describe("LoadModel", () => {
  it("equals a recount after every operation, and returns to exactly 0", () => {
    fc.assert(
      fc.property(
        fc.array(operation, { maxLength: 120, size: "max" }),
        fc.constantFrom(...Object.keys(endings)),
        (operations, ending) => {
          const comparison = new Comparison();
          const { model } = comparison;
          for (const step of operations) {
            const { actual, expected } = comparison.apply(step);
            expect(actual).toEqual(expected);
            expect(model.size).toBe(comparison.live.length);
            for (let replica = 0; replica < REPLICAS; replica++) {
              expect(model.describe(replica).modelled).toEqual(recount(comparison.live, replica));
            }
          }
          endings[ending](comparison);
          expect(model.size).toBe(0);
          for (let replica = 0; replica < REPLICAS; replica++) {
            expect(model.describe(replica).modelled).toEqual(ZERO);
          }
        },
      ),
      { numRuns: 120 },
    );
  });

  it("counts growth the same in bulk and chunk by chunk", () => {
    fc.assert(
      fc.property(fc.nat({ max: 300 }), fc.array(fc.nat({ max: 50 }), { maxLength: 30 }), (promptTokens, chunks) => {
        const [bulk, chunked] = [freshModel(), freshModel()];
        bulk.reserve(0, "r", 0, promptTokens, 0);
        chunked.reserve(0, "r", 0, promptTokens, 0);
        for (const tokens of chunks) chunked.grew(1, "r", tokens);
        bulk.grew(
          1,
          "r",
          chunks.reduce((total, tokens) => total + tokens, 0),
        );
        expect(chunked.describe(0)).toEqual(bulk.describe(0));
        expect(chunked.ended(2, "r")).toEqual(bulk.ended(2, "r"));
      }),
    );
  });
});
