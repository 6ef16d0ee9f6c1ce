import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { addMultimodalKeys, hashBlocks, hashSeed, type MultimodalKey } from "../../core/hash.ts";
import type { KvChange, KvEvent } from "../../core/kv-index/types.ts";
import { hashesOf } from "./hash-text.ts";
import { TensorRtDecoder } from "./tensorrt-decoder.ts";
import { encodeTensorRtEvent } from "./tensorrt-encoder.ts";

interface ExpectedChange {
  readonly kind: "stored" | "removed";
  readonly tier: KvChange["tier"];
  readonly engine: readonly string[];
  readonly parent: string | null;
  readonly tokens: readonly number[];
  readonly cacheSalt: string | null;
  readonly keys: readonly MultimodalKey[];
}

interface Fixture {
  readonly name: string;
  readonly rank: number;
  readonly text: string;
  readonly undecodable: number;
  readonly ignored: number;
  readonly expect: readonly { readonly eventId: number; readonly changes: readonly ExpectedChange[] }[];
}

const path = new URL("../../../test/fixtures/kv-events/tensorrt-events.json", import.meta.url);
const { blockTokens, answers } = JSON.parse(readFileSync(path, "utf8")) as {
  readonly blockTokens: number;
  readonly answers: readonly Fixture[];
};

function changeOf({ kind, tier, engine: texts, parent, tokens, cacheSalt, keys }: ExpectedChange): KvChange {
  const engine = hashesOf(texts.join("")) ?? new Uint32Array(0);
  if (kind === "removed") return { kind, tier, engine };
  const local = new Uint32Array(engine.length);
  const seed = hashSeed(cacheSalt === null ? {} : { cacheSalt });
  hashBlocks(Uint32Array.from(tokens), tokens.length, blockTokens, seed, local);
  addMultimodalKeys(local, keys);
  return { kind, tier, parent: parent === null ? null : (hashesOf(parent) ?? null), engine, local };
}

describe("the decoder of TensorRT-LLM's KV events", () => {
  test.each(answers)("reads what Python wrote: $name", ({ rank, text, undecodable, ignored, expect: expected }) => {
    const answer = new TensorRtDecoder({ blockTokens, dpRank: rank }).decode(text);
    expect(answer).toEqual({
      events: expected.map(({ eventId, changes }) => ({ eventId, changes: changes.map(changeOf) })),
      undecodable,
      ignored,
    });
  });

  test.each(["", "{}", "[", '"text"', "null", "[1,", '{"event_id":0}'])("does not take %j for an answer", (text) => {
    expect(new TensorRtDecoder({ blockTokens }).decode(text)).toBeUndefined();
  });

  describe("of what no engine should send", () => {
    const block = (extra: string): string =>
      `{"block_hash":12345678901234567890,"tokens":[{"token_id":1,"token_extra_id":${extra}}],"cache_level":0}`;
    const stored = (extra: string): string =>
      `[{"event_id":7,"data":{"type":"stored","parent_hash":null,"blocks":[${block(extra)}]}}]`;
    const decode = (text: string): unknown => new TensorRtDecoder({ blockTokens: 1 }).decode(text);

    test("counts a value that is nested beyond all reason as undecodable", () => {
      const deep = "[".repeat(100_000) + "]".repeat(100_000);
      expect(decode(stored(deep))).toEqual({ events: [], undecodable: 1, ignored: 0 });
      expect(decode(stored("[1]"))).toMatchObject({ undecodable: 0, events: [{ eventId: 7 }] });
    });

    test("reads strings of any length, and gives up on one without an end", () => {
      expect(decode(stored(`"${"x".repeat(10_000_000)}"`))).toMatchObject({ events: [{ eventId: 7 }] });
      expect(decode(`["${'\\"'.repeat(1_000_000)}`)).toBeUndefined();
    });

    test("leaves numbers with a fraction or an exponent alone, and what looks like one inside a string", () => {
      const hashesIn = (text: string): unknown =>
        (decode(text) as { events: { changes: KvChange[] }[] }).events[0].changes;
      const plain = hashesIn(stored("0.12345678901234567890"));
      expect(plain).toEqual(hashesIn(stored("0.1234567890123456789")));
      for (const extra of ["-1.5e10", "1e400", '"a 12345678901234567890 \\" 1"'])
        expect(hashesIn(stored(extra))).toHaveLength(1);
    });
  });

  test("reads what our own workers write in its shape", () => {
    const lane = fc.integer({ min: 0, max: 0xffff_ffff });
    const hashes = fc.array(fc.tuple(lane, lane), { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(hashes, fc.option(fc.tuple(lane, lane)), fc.nat(), (pairs, parent, eventId) => {
        const engine = Uint32Array.from(pairs.flat());
        const tokens = Uint32Array.from({ length: blockTokens * pairs.length }, (_, i) => (eventId % 1000) + i);
        const event: KvEvent = {
          kind: "stored",
          tier: "device",
          parent: parent && Uint32Array.from(parent),
          engine,
          local: null,
          incarnation: "",
          eventId,
        };
        const text = `[${encodeTensorRtEvent(event, tokens, blockTokens)}]`;
        const answer = new TensorRtDecoder({ blockTokens }).decode(text);
        expect(answer?.events).toMatchObject([{ eventId, changes: [{ engine, parent: event.parent }] }]);
      }),
    );
  });
});
