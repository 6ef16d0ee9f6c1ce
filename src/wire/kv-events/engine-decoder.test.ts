import { readFileSync } from "node:fs";
import { decode } from "@msgpack/msgpack";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { addMultimodalKeys, hashBlocks, hashSeed, type MultimodalKey } from "../../core/hash.ts";
import type { KvChange } from "../../core/kv-index/types.ts";
import { EngineDecoder } from "./engine-decoder.ts";
import { encodeEngineBatch, type EngineChange, type EventShape } from "./engine-encoder.ts";
import { hashesOf, textOfHashes } from "./hash-text.ts";

interface ExpectedEvent {
  readonly kind: "stored" | "removed" | "cleared";
  readonly tier: KvChange["tier"];
  readonly engine: readonly string[];
  readonly parent: string | null;
  readonly tokens: readonly number[];
  readonly loraName: string | null;
  readonly cacheSalt: string | null;
  readonly extraKeys: readonly MultimodalKey[];
}

interface Fixture {
  readonly name: string;
  readonly payload: string;
  readonly dpRank: number | null;
  readonly undecodable: number;
  readonly ignored: number;
  readonly events: readonly ExpectedEvent[];
}

interface Fixtures {
  readonly blockTokens: number;
  readonly timestampSeconds: number;
  readonly batches: readonly Fixture[];
  readonly damaged: readonly Fixture[];
}

const path = new URL("../../../test/fixtures/kv-events/kv-events.json", import.meta.url);
const fixtures = JSON.parse(readFileSync(path, "utf8")) as Fixtures;
const { blockTokens } = fixtures;

const lanes = (texts: readonly string[]): Uint32Array => hashesOf(texts.join("")) ?? new Uint32Array(0);
const bytesOf = ({ payload }: Fixture): Uint8Array => Buffer.from(payload, "base64");

function changeOf(expected: ExpectedEvent): KvChange {
  const { kind, tier } = expected;
  if (kind === "cleared") return { kind, tier };
  const engine = lanes(expected.engine);
  if (kind === "removed") return { kind, engine, tier };
  const { tokens, loraName, cacheSalt, extraKeys, parent } = expected;
  const seed = hashSeed({ ...(loraName !== null && { loraName }), ...(cacheSalt !== null && { cacheSalt }) });
  const local = new Uint32Array(engine.length);
  hashBlocks(Uint32Array.from(tokens), tokens.length, blockTokens, seed, local);
  addMultimodalKeys(local, extraKeys);
  return { kind, parent: parent === null ? null : lanes([parent]), engine, local, tier };
}

describe("the decoder of engines' KV events", () => {
  test.each(fixtures.batches)("reads what msgspec wrote: $name", (fixture) => {
    expect(new EngineDecoder(blockTokens).decode(bytesOf(fixture))).toMatchObject({
      timestampSeconds: fixtures.timestampSeconds,
      dpRank: fixture.dpRank ?? undefined,
      changes: fixture.events.map(changeOf),
      undecodable: 0,
    });
  });

  test.each(fixtures.damaged)("counts $name, and goes on after it", (fixture) => {
    expect(new EngineDecoder(blockTokens).decode(bytesOf(fixture))).toMatchObject({
      changes: fixture.events.map(changeOf),
      undecodable: fixture.undecodable,
      ignored: fixture.ignored,
    });
  });

  test("never throws, whatever the bytes, and reads on as if nothing had been", () => {
    const decoder = new EngineDecoder(blockTokens);
    const payloads = [...fixtures.batches, ...fixtures.damaged].map(bytesOf);
    const damage = fc.record({
      payload: fc.constantFrom(...payloads),
      at: fc.nat(400),
      byte: fc.nat(255),
      length: fc.nat(400),
    });
    const whole = fixtures.batches[1];
    const expected = new EngineDecoder(blockTokens).decode(bytesOf(whole));
    fc.assert(
      fc.property(damage, fc.uint8Array({ maxLength: 64 }), ({ payload, at, byte, length }, noise) => {
        const bytes = payload.slice(0, Math.max(1, length));
        bytes[at % bytes.length] = byte;
        decoder.decode(bytes);
        decoder.decode(noise);
        // Groups learned from damaged stores are the one thing that is remembered; this batch has none.
        expect(decoder.decode(bytesOf(whole))).toEqual(expected);
      }),
      { numRuns: 3000 },
    );
  });

  test("takes no payload for a batch that is cut short or goes on after its end", () => {
    const payload = bytesOf(fixtures.batches[0]);
    for (let length = 0; length < payload.length; length++) {
      expect(new EngineDecoder(blockTokens).decode(payload.subarray(0, length))).toBeUndefined();
    }
    expect(new EngineDecoder(blockTokens).decode(Buffer.concat([payload, Buffer.of(1)]))).toBeUndefined();
  });
});

describe("the encoder of engines' KV events", () => {
  const hash = fc.tuple(fc.nat(0xffff_ffff), fc.nat(0xffff_ffff));
  const hashes = fc.array(hash, { minLength: 1, maxLength: 40 }).map((pairs) => Uint32Array.from(pairs.flat()));
  const tier = fc.constantFrom("device" as const, "host" as const, "disk" as const, "remote" as const);
  const change: fc.Arbitrary<EngineChange> = fc.oneof(
    fc
      .record({ engine: hashes, parent: fc.option(hash), tier, seed: fc.nat(), lora: fc.option(fc.string()) })
      .map(({ engine, parent, tier: where, seed, lora }) => ({
        change: {
          kind: "stored" as const,
          engine,
          parent: parent === null ? null : Uint32Array.from(parent),
          local: null,
          tier: where,
        },
        content: {
          tokens: Uint32Array.from({ length: (engine.length / 2) * blockTokens }, (_, i) => (seed * (i + 1)) >>> 0),
          identity: lora === null ? {} : { loraName: lora },
        },
      })),
    fc.record({ engine: hashes, tier }).map((removed) => ({ change: { kind: "removed" as const, ...removed } })),
    fc.constant({ change: { kind: "cleared" as const, tier: "device" as const } }),
  );

  test.each(["map", "array"] as const)("writes %ss that the decoder reads back", (shape: EventShape) => {
    fc.assert(
      fc.property(fc.array(change, { maxLength: 20 }), fc.nat(300), (changes, dpRank) => {
        const head = { timestampSeconds: 12.5, dpRank, blockTokens };
        const decoded = new EngineDecoder(blockTokens).decode(encodeEngineBatch(head, changes, shape));
        expect(decoded).toEqual({
          timestampSeconds: 12.5,
          dpRank,
          changes: changes.map(withLocal),
          undecodable: 0,
          ignored: 0,
        });
      }),
    );
  });

  test("writes what another decoder reads", () => {
    const engine = Uint32Array.of(1, 0x8000_0000, 7, 0);
    const content = { tokens: Uint32Array.from({ length: 8 }, (_, i) => i * 70_000) };
    const stored = { kind: "stored", parent: null, engine, local: null, tier: "device" } as const;
    const head = { timestampSeconds: 1.5, dpRank: 3, blockTokens };
    expect(decode(encodeEngineBatch(head, [{ change: stored, content }]), { useBigInt64: true })).toEqual([
      1.5,
      [
        {
          type: "BlockStored",
          block_hashes: [0x8000_0000_0000_0001n, 7],
          parent_block_hash: null,
          token_ids: [...content.tokens],
          block_size: 4,
          lora_id: null,
          medium: "GPU",
          lora_name: null,
        },
      ],
      3,
    ]);
  });

  test.each(["map", "array"] as const)("keeps salted blocks apart from others in %ss", (shape: EventShape) => {
    const engine = Uint32Array.of(1, 2);
    const tokens = Uint32Array.of(1, 2, 3, 4);
    const stored = { kind: "stored", parent: null, engine, local: null, tier: "device" } as const;
    const localOf = (cacheSalt?: string): string => {
      const content = { tokens, identity: cacheSalt === undefined ? {} : { cacheSalt } };
      const payload = encodeEngineBatch(
        { timestampSeconds: 0, dpRank: 0, blockTokens },
        [{ change: stored, content }],
        shape,
      );
      const decoded = new EngineDecoder(blockTokens).decode(payload)?.changes[0];
      return decoded?.kind === "stored" ? textOfHashes(decoded.local ?? new Uint32Array(0)) : "nothing";
    };
    expect(new Set([localOf(), localOf("a"), localOf("b")]).size).toBe(3);
  });

  function withLocal({ change: made, content }: EngineChange): KvChange {
    if (made.kind !== "stored" || content === undefined) return made;
    const local = new Uint32Array(made.engine.length);
    hashBlocks(content.tokens, content.tokens.length, blockTokens, hashSeed(content.identity ?? {}), local);
    return { ...made, local };
  }
});
