/** One message of an engine: its number and what it says. */
export interface EngineMessage {
  readonly sequence: number;
  readonly timestampSeconds: number;
  readonly payload: Uint8Array;
}

/**
 * Tells an engine's lives apart, which vLLM and SGLang do not name: they count messages from 0, and a restart counts from 0
 * again. Two signs show a restart: a number that was passed before, under a newer message; and, after a reconnection, that the
 * source no longer has the last message heard, byte for byte, as its timestamp makes it unique.
 */
export class EngineLife {
  #lives = 1;
  #last: EngineMessage | undefined;

  /** A name for the present life, as events need one. */
  get incarnation(): string {
    return `life-${this.#lives}`;
  }

  /** The message with the highest number in this life. */
  get last(): EngineMessage | undefined {
    return this.#last;
  }

  /** Takes note of a message as it comes, and begins a new life if it shows one. */
  heard(message: EngineMessage): void {
    const last = this.#last;
    if (last === undefined || message.sequence > last.sequence) {
      this.#last = message;
      return;
    }
    // What was sent again may overtake what is still on its way, and is then newer. A time that is none shows nothing.
    if (!(message.timestampSeconds > last.timestampSeconds)) return;
    this.begin();
    this.#last = message;
  }

  /** Takes note of a message that was sent again: part of this life, whatever its number. */
  replayed(message: EngineMessage): void {
    if (this.#last === undefined || message.sequence > this.#last.sequence) this.#last = message;
  }

  /** Whether a source that was reached again is still the same, by what it has kept from the last message heard on. */
  isContinuedBy(kept: readonly EngineMessage[]): boolean {
    const last = this.#last;
    if (last === undefined) return true;
    const first = kept[0];
    return first !== undefined && first.sequence === last.sequence && isEqual(first.payload, last.payload);
  }

  begin(): void {
    this.#lives++;
    this.#last = undefined;
  }
}

function isEqual(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}
