import type { Socket } from "node:net";

/**
 * Knows when connections have read the bodies that are written to them. An HTTP client takes a body for sent when it has handed it
 * to its connection; until the kernel has taken the last byte in, or the connection is gone, it is still read.
 */
export class ReadBodies {
  readonly #readers = new WeakMap<Uint8Array, () => void>();

  /** A body for one request over one of the connections; `read` is called when nothing can read it any more. */
  expected(body: Uint8Array, read: () => void): Buffer {
    // The same memory under a name of its own, which no other attempt with this body has.
    const named = Buffer.from(body.buffer, body.byteOffset, body.length);
    this.#readers.set(named, read);
    return named;
  }

  /** Watches what is written to a connection. */
  watch(socket: Socket): void {
    const write = socket.write.bind(socket) as (chunk: Uint8Array | string, ...rest: unknown[]) => boolean;
    socket.write = (chunk: Uint8Array | string, ...rest: unknown[]): boolean => {
      const read = typeof chunk === "string" ? undefined : this.#readers.get(chunk);
      // Called as well if the connection is lost, and then after the last byte that was read.
      return read === undefined ? write(chunk, ...rest) : write(chunk, () => read());
    };
  }
}
