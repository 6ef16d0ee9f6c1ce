interface Kept<Value> {
  readonly text: string;
  readonly value: Value;
  readonly chars: number;
}

/**
 * Values by text, bounded by how much text it keeps.
 *
 * Two generations instead of a list in order of use: what is used again moves to the young one, and when that is full the old
 * one is forgotten.
 */
export class BoundedCache<Value> {
  readonly #generationChars: number;
  #young = new Map<string, Kept<Value>>();
  #old = new Map<string, Kept<Value>>();
  #youngChars = 0;

  /** @param maxChars text kept in all, in characters */
  constructor(maxChars: number) {
    this.#generationChars = maxChars / 2;
  }

  get(text: string): Value | undefined {
    const young = this.#young.get(text);
    if (young !== undefined) return young.value;
    const old = this.#old.get(text);
    // Under its own text: the one that is asked for may be a slice of something larger.
    if (old !== undefined) this.#keep(old);
    return old?.value;
  }

  /**
   * Keeps a value under a text, which must not be a slice of something larger: that would be kept too.
   * @param chars what it counts for
   */
  set(text: string, value: Value, chars: number = text.length): void {
    if (chars <= this.#generationChars && !this.#young.has(text)) this.#keep({ text, value, chars });
  }

  #keep(kept: Kept<Value>): void {
    if (this.#youngChars + kept.chars > this.#generationChars) {
      this.#old = this.#young;
      this.#young = new Map();
      this.#youngChars = 0;
    }
    this.#young.set(kept.text, kept);
    this.#youngChars += kept.chars;
  }
}
