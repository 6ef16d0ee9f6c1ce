import type { Readable } from "node:stream";

/** So much is read as fast as it comes. */
const HASTY_BYTES = 1024 * 1024;

/** What comes after waits so long for so many bytes. */
const PAUSE_MS = 1;
const BYTES_BETWEEN = 64 * 1024;

/** A piece takes as long as so many bytes, however few it has. */
const PIECE_BYTES = 256;

/**
 * Lets others have their turn while much is read from one connection, which can bring megabytes faster than anybody else is
 * served. Heard in turns it would still be most of what is done until its end; with pauses it is a small part, and even a body
 * at the limit comes in less than a second.
 */
export class BytesInTurn {
  readonly #source: Readable;
  #bytes = 0;
  #pausedAt = HASTY_BYTES;
  #isPausing = false;

  constructor(source: Readable) {
    this.#source = source;
  }

  /** A piece of so many bytes has been read. */
  took(bytes: number): void {
    this.#bytes += Math.max(bytes, PIECE_BYTES);
    if (this.#isPausing || this.#bytes <= this.#pausedAt) return;
    this.#isPausing = true;
    this.#source.pause();
    // What was read together with this piece comes in spite of the pause, and counts for it.
    setImmediate(() => {
      const turns = Math.ceil((this.#bytes - this.#pausedAt) / BYTES_BETWEEN);
      this.#pausedAt = this.#bytes + BYTES_BETWEEN;
      setTimeout(() => this.#goOn(), turns * PAUSE_MS);
    });
  }

  #goOn(): void {
    this.#isPausing = false;
    this.#source.resume();
  }
}
