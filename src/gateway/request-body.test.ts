import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import { describe, expect, it, vi } from "vitest";
import { readBody } from "./request-body.ts";

const MEGABYTE = 1024 * 1024;

function arriving(bytes: number, pieceBytes: number): IncomingMessage {
  const pieces = Array.from({ length: bytes / pieceBytes }, () => Buffer.alloc(pieceBytes, "x"));
  return Object.assign(Readable.from(pieces, { objectMode: false }), { headers: {} }) as unknown as IncomingMessage;
}

/** Reads a body whole, and tells how often others were let go first. */
async function pauses(bytes: number, pieceBytes: number): Promise<number> {
  const request = arriving(bytes, pieceBytes);
  const pause = vi.spyOn(request, "pause");
  expect(await readBody(request, 4 * MEGABYTE)).toMatchObject({ kind: "read", bytes: { length: bytes } });
  return pause.mock.calls.length;
}

describe("a body", () => {
  it("of up to a megabyte is read as fast as it comes", async () => {
    expect(await pauses(MEGABYTE, 64 * 1024)).toBe(0);
  });

  it("of more lets others go after every 64 KB, however small the pieces it comes in", async () => {
    expect(await pauses(2 * MEGABYTE, 64 * 1024)).toBeGreaterThanOrEqual(8);
    expect(await pauses(2 * MEGABYTE, 1024)).toBeGreaterThanOrEqual(8);
    expect(await pauses(2 * MEGABYTE, 1024)).toBeLessThanOrEqual(16);
  });

  it("in very many pieces lets others go for each of them, however few bytes it has", async () => {
    expect(await pauses(20_000, 1)).toBeGreaterThanOrEqual(1);
    expect(await pauses(2_000, 1)).toBe(0);
  });

  it("of more than the limit is not read on", async () => {
    expect(await readBody(arriving(5 * MEGABYTE, 64 * 1024), 4 * MEGABYTE)).toEqual({ kind: "too-large" });
  });
});
