import { joinBytes } from "./body.ts";

/** Pieces from here on are kept as they came. */
const LARGE_BYTES = 4096;
const BLOCK_BYTES = 64 * 1024;

/**
 * The pieces of a body as they arrive. Each piece that is kept takes memory beside its bytes, and whoever sends decides how small
 * they are: of single bytes it would be hundreds of times as much. So small ones are copied together, but for a first one, which
 * most often is all there is.
 */
export class BodyPieces {
  readonly #pieces: Uint8Array[] = [];
  #block: Uint8Array | undefined;
  #filled = 0;
  #length = 0;

  /** Bytes so far. */
  get length(): number {
    return this.#length;
  }

  /** How many pieces of memory they are in. */
  get count(): number {
    return this.#pieces.length + (this.#block === undefined ? 0 : 1);
  }

  add(piece: Uint8Array): void {
    const isFirst = this.#length === 0;
    this.#length += piece.length;
    if (isFirst || piece.length >= LARGE_BYTES) {
      this.#closeBlock();
      this.#pieces.push(piece);
    } else this.#copy(piece);
  }

  /** All of it in one; a single piece is not copied. */
  join(): Uint8Array {
    this.#closeBlock();
    return joinBytes(this.#pieces, this.#length);
  }

  /** Forgets all of it. */
  clear(): void {
    this.#pieces.length = 0;
    this.#block = undefined;
    this.#filled = 0;
    this.#length = 0;
  }

  #copy(piece: Uint8Array): void {
    if (this.#block !== undefined && this.#filled + piece.length > BLOCK_BYTES) this.#closeBlock();
    this.#block ??= new Uint8Array(BLOCK_BYTES);
    this.#block.set(piece, this.#filled);
    this.#filled += piece.length;
  }

  #closeBlock(): void {
    // Most of a block that holds little is given back.
    const isFull = this.#filled > BLOCK_BYTES / 2;
    if (this.#block !== undefined) {
      this.#pieces.push(isFull ? this.#block.subarray(0, this.#filled) : this.#block.slice(0, this.#filled));
    }
    this.#block = undefined;
    this.#filled = 0;
  }
}
