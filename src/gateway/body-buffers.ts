const SMALLEST_BYTES = 4096;
/** Larger bodies are too rare to keep room for. */
const LARGEST_BYTES = 1024 * 1024;
const DEFAULT_KEPT_BYTES = 16 * 1024 * 1024;

/**
 * Memory for the bodies that are sent to workers, used again and again. A body is held as long as its answer lasts, because the
 * HTTP client holds it; as garbage it would be old by then, and only the slow kind of collection frees what is old.
 */
export class BodyBuffers {
  readonly #keptBytes: number;
  readonly #free = new Map<number, ArrayBuffer[]>();
  #freeBytes = 0;

  /** @param keptBytes memory that is kept while nobody uses it */
  constructor(keptBytes: number = DEFAULT_KEPT_BYTES) {
    this.#keptBytes = keptBytes;
  }

  /** Room for so many bytes, with anything in it. */
  take(bytes: number): Uint8Array {
    const size = sizeFor(bytes);
    const buffer = this.#free.get(size)?.pop();
    if (buffer === undefined) return new Uint8Array(new ArrayBuffer(Math.max(size, bytes)), 0, bytes);
    this.#freeBytes -= size;
    return new Uint8Array(buffer, 0, bytes);
  }

  /** Takes room back that nobody reads or writes any more. */
  giveBack({ buffer }: Uint8Array): void {
    const size = buffer.byteLength;
    if (!(buffer instanceof ArrayBuffer) || size !== sizeFor(size) || this.#freeBytes + size > this.#keptBytes) return;
    const free = this.#free.get(size);
    if (free === undefined) this.#free.set(size, [buffer]);
    else free.push(buffer);
    this.#freeBytes += size;
  }
}

/** A power of two that has the bytes; 0 for bodies that are not kept. */
function sizeFor(bytes: number): number {
  if (bytes > LARGEST_BYTES) return 0;
  return Math.max(SMALLEST_BYTES, 2 ** Math.ceil(Math.log2(bytes)));
}
