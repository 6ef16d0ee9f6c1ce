import type { ServerResponse } from "node:http";

const LINE_END = "\r\n";

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
    const length = chunk.length.toString(16);
    const at = length.length + LINE_END.length;
    const frame = Buffer.allocUnsafe(at + chunk.length + LINE_END.length);
    frame.write(length + LINE_END, 0, "latin1");
    frame.set(chunk, at);
    frame.write(LINE_END, at + chunk.length, "latin1");
    return socket.write(frame);
  }
}
