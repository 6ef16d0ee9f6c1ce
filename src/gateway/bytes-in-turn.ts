import type { Readable } from "node:stream";

/** So much is read as fast as it comes. */
const HASTY_BYTES = 1024 * 1024;

/** What comes after waits so long after so many bytes, in however small pieces these come. */
const PAUSE_MS = 1;
const BYTES_BETWEEN = 64 * 1024;

/**
 * Lets others have their turn while much is read from one connection, which can bring megabytes faster than anybody else is
 * served. Heard in turns it would still be most of what is done until its end; with a pause it is a small part, and even a body
 * at the limit comes in less than a second.
 */
export class BytesInTurn {
  readonly #source: Readable;
  #bytes = 0;
  #pauseAt = HASTY_BYTES;

  constructor(source: Readable) {
    this.#source = source;
  }

  /** So many bytes have been read. */
  took(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes <= this.#pauseAt) return;
    this.#pauseAt = this.#bytes + BYTES_BETWEEN;
    const source = this.#source;
    source.pause();
    setTimeout(() => source.resume(), PAUSE_MS);
  }
}
