import type { ServerResponse } from "node:http";

const LINE_END_BYTES = 2;
const CARRIAGE_RETURN = 0x0d;
const LINE_FEED = 0x0a;
const HEX_DIGITS: Uint8Array = new TextEncoder().encode("0123456789abcdef");

/**
 * Writes the chunks of a streamed answer. Node sends the length, the bytes and the line end of a chunk as three buffers; put
 * together by hand they are one, which is a good part of what forwarding a small chunk costs. The headers, the first
 * chunk and the end stay Node's.
 */
export class ChunkWriter {
  readonly #response: ServerResponse;
  #isOpen = false;

  /** `drained` is called when more may be written after `write` has said no. */
  constructor(response: ServerResponse, drained: () => void) {
    this.#response = response;
    // The connection outlives the answer, and is no longer the answer's when that has ended.
    const { socket } = response;
    response.on("drain", drained);
    socket?.on("drain", drained);
    response.on("close", () => socket?.off("drain", drained));
  }

  /** Writes a chunk; false if no more may come until it is drained. */
  write(chunk: Uint8Array): boolean {
    const response = this.#response;
    const { socket } = response;
    // Whoever speaks HTTP/1.0 gets no chunks, and a socket that is gone nothing at all.
    if (!this.#isOpen || socket === null || !response.chunkedEncoding) {
      this.#isOpen = true;
      return response.write(chunk);
    }
    const { length } = chunk;
    let digits = 1;
    while (length >>> (4 * digits) > 0) digits++;
    const frame = Buffer.allocUnsafe(digits + length + 2 * LINE_END_BYTES);
    for (let i = 0; i < digits; i++) frame[i] = HEX_DIGITS[(length >>> (4 * (digits - 1 - i))) & 15];
    let at = digits;
    frame[at++] = CARRIAGE_RETURN;
    frame[at++] = LINE_FEED;
    frame.set(chunk, at);
    at += length;
    frame[at++] = CARRIAGE_RETURN;
    frame[at] = LINE_FEED;
    return socket.write(frame);
  }
}
