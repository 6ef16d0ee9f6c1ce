import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { GapRecorder } from "../metrics/gap-recorder.ts";
import { FRAME, FrameReader, FrameWriter } from "./frames.ts";
import { decodeEnd, decodeOffer, encodeOffer, writableEnd } from "./messages.ts";

describe("frames between proxies and decider", () => {
  test("come out as they went in, wherever the stream is cut", () => {
    const frames = fc.array(fc.tuple(fc.nat(0xffffffff), fc.uint8Array({ maxLength: 3000 })), { maxLength: 20 });
    fc.assert(
      fc.property(frames, fc.integer({ min: 1, max: 4000 }), (sent, cut) => {
        const writer = new FrameWriter();
        for (const [request, payload] of sent) writer.add(FRAME.ended, request, payload);
        const bytes = Buffer.from(writer.take());
        expect(writer.isEmpty).toBe(true);
        const read: [number, Uint8Array][] = [];
        const reader = new FrameReader((kind, request, payload) => {
          expect(kind).toBe(FRAME.ended);
          read.push([request, Uint8Array.from(payload)]);
        });
        for (let at = 0; at < bytes.length; at += cut) reader.push(bytes.subarray(at, at + cut));
        expect(read).toEqual(sent);
      }),
    );
  });

  test("that are too long to be true are refused", () => {
    const reader = new FrameReader(() => {});
    expect(() => reader.push(Buffer.from([255, 255, 255, 255, 1, 0, 0, 0, 0]))).toThrow(RangeError);
  });

  test("carry numbers up to the largest they have room for, and that one for any beyond", () => {
    const writer = new FrameWriter();
    for (const value of [0, 7, 2 ** 32 - 1, 2 ** 32, Number.MAX_SAFE_INTEGER]) writer.addNumber(FRAME.grew, 1, value);
    const read: number[] = [];
    new FrameReader((_kind, _request, payload) => read.push(payload.readUInt32LE(0))).push(Buffer.from(writer.take()));
    expect(read).toEqual([0, 7, 2 ** 32 - 1, 2 ** 32 - 1, 2 ** 32 - 1]);
  });

  test("carry an offer with its hashes", () => {
    const sequence = Uint32Array.from({ length: 12 }, (_, i) => 4_000_000_000 + i);
    const preparation = { parseMs: 0.1, tokenizeMs: 0.2, hashMs: 0.3 };
    const offer = { id: "request-1", promptTokens: 70, sequence, blocks: 6, preparation, session: "ü", priority: 2 };
    const { head, hashes } = encodeOffer(offer);
    // One byte in front, as a frame may lie anywhere.
    const payload = Buffer.concat([Buffer.from([0]), head, hashes]).subarray(1);
    expect(decodeOffer(payload)).toEqual(offer);
  });

  test("carry an end with what is cached after it", () => {
    const sequence = Uint32Array.from({ length: 9 }, (_, i) => 4_000_000_000 + i).subarray(1);
    const end = { outcome: "completed", kept: { sequence, blocks: 4 } } as const;
    expect(decodeEnd(Buffer.from(JSON.stringify(writableEnd(end))))).toEqual(end);
  });

  test("carry an end with its gaps", () => {
    const gaps = new GapRecorder();
    gaps.add(12, 1);
    const end = { outcome: "completed", cachedTokens: 3, ttftMs: 1.5, gaps } as const;
    const read = decodeEnd(Buffer.from(JSON.stringify(writableEnd(end))));
    expect(read).toMatchObject({ outcome: "completed", cachedTokens: 3, ttftMs: 1.5 });
    expect(read.gaps).toEqual({ counts: gaps.counts, sumSeconds: gaps.sumSeconds });
  });
});
