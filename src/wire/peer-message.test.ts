import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { PeerNews } from "../core/peer-books.ts";
import { type PeerMessage, decodePeerMessage, encodePeerMessage } from "./peer-message.ts";

const name = fc.string({ minLength: 1, maxLength: 12 });
const lane = fc.nat({ max: 0xffff_ffff });
const sequence = fc.array(fc.tuple(lane, lane), { maxLength: 20 }).map((blocks) => Uint32Array.from(blocks.flat()));

const placed = fc
  .record({ request: name, replica: name, cachedTokens: fc.nat(), more: fc.nat(), sequence })
  .map(({ more, ...rest }): PeerNews => ({ kind: "placed", promptTokens: rest.cachedTokens + more, ...rest }));

const news = fc.oneof(
  placed,
  fc.record({ kind: fc.constant("first-token" as const), request: name }),
  fc.record({ kind: fc.constant("grew" as const), request: name, tokens: fc.nat() }),
  fc.record({ kind: fc.constant("ended" as const), request: name }),
  fc.record({ kind: fc.constant("ended" as const), request: name, kept: sequence }),
);

const message: fc.Arbitrary<PeerMessage> = fc.record({
  from: name,
  blockTokens: fc.nat(),
  kind: fc.constantFrom("news" as const, "known", "alive", "hello", "leaving"),
  news: fc.array(news, { maxLength: 6 }),
  open: fc.array(name, { maxLength: 6 }),
});

describe("what gateways tell each other", () => {
  test("is read as it was written", () => {
    fc.assert(
      fc.property(message, (written) => {
        expect(decodePeerMessage(encodePeerMessage(written))).toEqual({ message: written });
      }),
    );
  });

  test("damaged in any way is malformed, of another version, or something else that can be used; never an exception", () => {
    fc.assert(
      fc.property(message, fc.nat(), fc.nat({ max: 255 }), fc.nat(), (written, at, value, cut) => {
        const bytes = encodePeerMessage(written);
        bytes[at % bytes.length] = value;
        const { message: read, problem } = decodePeerMessage(bytes.subarray(0, bytes.length - (cut % 3)));
        expect(problem ?? read?.from).toBeTruthy();
      }),
    );
  });

  test("a byte too few or too many makes it malformed", () => {
    const whole = encodePeerMessage({ from: "a", blockTokens: 16, kind: "alive", news: [], open: ["x"] });
    expect(decodePeerMessage(whole.subarray(0, whole.length - 1))).toEqual({ problem: "malformed" });
    expect(decodePeerMessage(Uint8Array.of(...whole, 0))).toEqual({ problem: "malformed" });
    expect(decodePeerMessage(new Uint8Array(0))).toEqual({ problem: "malformed" });
  });

  test("of another version is told from what is damaged", () => {
    const json = new TextEncoder().encode(JSON.stringify({ version: 1, anything: true }));
    expect(decodePeerMessage(Uint8Array.of(json.length, 0, 0, 0, ...json))).toEqual({ problem: "other-version" });
  });

  test("of a very long prompt is its beginning", () => {
    const long: PeerNews = {
      kind: "placed",
      request: "r",
      replica: "a",
      promptTokens: 1_000_000,
      cachedTokens: 0,
      sequence: Uint32Array.from({ length: 40_000 }, (_, i) => i),
    };
    const bytes = encodePeerMessage({ from: "a", blockTokens: 16, kind: "news", news: [long], open: [] });
    expect(bytes.length).toBeLessThan(100_000);
    const [read] = decodePeerMessage(bytes).message?.news ?? [];
    expect(read).toEqual({ ...long, sequence: long.sequence.slice(0, 16_384) });
  });
});
