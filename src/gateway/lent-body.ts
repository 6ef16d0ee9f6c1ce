/**
 * A body in memory that is used again. It may be read long after its answer has begun, or after its attempt was given up: what a
 * worker does not take in waits in this process, where it is no copy. So it is given back when it will not be sent again and
 * everybody it was lent to is known to have read it; if somebody never says so, it is not used again at all.
 */
export class LentBody {
  readonly bytes: Uint8Array;
  readonly #giveBack: (bytes: Uint8Array) => void;
  #readers = 0;
  #isReleased = false;

  constructor(bytes: Uint8Array, giveBack: (bytes: Uint8Array) => void) {
    this.bytes = bytes;
    this.#giveBack = giveBack;
  }

  /** One more is going to read it; returns how to say that this one reads it no longer. */
  lend(): () => void {
    this.#readers++;
    let isReading = true;
    return () => {
      if (!isReading) return;
      isReading = false;
      this.#readers--;
      this.#returnIfUnused();
    };
  }

  /** It is lent to nobody else from now on. */
  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.#returnIfUnused();
  }

  #returnIfUnused(): void {
    if (this.#isReleased && this.#readers === 0) this.#giveBack(this.bytes);
  }
}
