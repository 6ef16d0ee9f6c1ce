/**
 * What proxies and the decider say to each other over their socket. A frame is its length, its kind, the number of the
 * request it is about, and a payload: JSON where it is rare, bytes where it is long. Both ends are of the same version and
 * on the same machine, so there is no negotiation.
 */

/** The kinds of frames, from the proxy's side first. */
export const FRAME = {
  hello: 1,
  offer: 2,
  sent: 3,
  firstToken: 4,
  grew: 5,
  ended: 6,
  refused: 7,
  metrics: 8,
  invalid: 9,
  standIn: 10,
  place: 32,
  shed: 33,
  over: 34,
  fleet: 35,
  metricsText: 36,
} as const;

export type FrameKind = (typeof FRAME)[keyof typeof FRAME];

/** Length of the rest, kind, request. */
const HEADER_BYTES = 4 + 1 + 4;
/** Small enough to come out of the pool that Node keeps for buffers. */
const FIRST_BYTES = 2048;
/** Longer than any prompt; beyond it the other side is not what it should be. */
const LONGEST_FRAME_BYTES = 256 * 1024 * 1024;

/** More than anybody counts here; what an engine claims beyond it is no reason to fail. */
const LARGEST_NUMBER = 0xffff_ffff;

const encoder = new TextEncoder();
const EMPTY = new Uint8Array(0);

/** Puts frames into one buffer until it is taken, so that many of them cost one write. */
export class FrameWriter {
  #buffer = Buffer.allocUnsafe(FIRST_BYTES);
  #length = 0;

  get isEmpty(): boolean {
    return this.#length === 0;
  }

  add(kind: FrameKind, request: number, payload: Uint8Array = EMPTY, more: Uint8Array = EMPTY): void {
    const length = HEADER_BYTES + payload.length + more.length;
    this.#reserve(length);
    const buffer = this.#buffer;
    const at = this.#length;
    buffer.writeUInt32LE(length - 4, at);
    buffer[at + 4] = kind;
    buffer.writeUInt32LE(request, at + 5);
    buffer.set(payload, at + HEADER_BYTES);
    buffer.set(more, at + HEADER_BYTES + payload.length);
    this.#length = at + length;
  }

  addNumber(kind: FrameKind, request: number, value: number): void {
    this.#reserve(HEADER_BYTES + 4);
    const at = this.#length;
    this.#buffer.writeUInt32LE(HEADER_BYTES, at);
    this.#buffer[at + 4] = kind;
    this.#buffer.writeUInt32LE(request, at + 5);
    this.#buffer.writeUInt32LE(Math.min(value, LARGEST_NUMBER), at + HEADER_BYTES);
    this.#length = at + HEADER_BYTES + 4;
  }

  addJson(kind: FrameKind, request: number, value: unknown): void {
    this.add(kind, request, encoder.encode(JSON.stringify(value)));
  }

  /** All frames so far; the writer begins anew. */
  take(): Uint8Array {
    const taken = this.#buffer.subarray(0, this.#length);
    this.#buffer = Buffer.allocUnsafe(FIRST_BYTES);
    this.#length = 0;
    return taken;
  }

  #reserve(bytes: number): void {
    const needed = this.#length + bytes;
    if (needed <= this.#buffer.length) return;
    const grown = Buffer.allocUnsafe(Math.max(needed, 2 * this.#buffer.length));
    grown.set(this.#buffer.subarray(0, this.#length));
    this.#buffer = grown;
  }
}

/** One frame as it was read; the payload is only valid during the call. */
export type FrameHandler = (kind: number, request: number, payload: Buffer) => void;

/** Takes frames out of a stream, wherever its chunks are cut. */
export class FrameReader {
  readonly #handle: FrameHandler;
  #rest: Buffer = Buffer.alloc(0);

  constructor(handle: FrameHandler) {
    this.#handle = handle;
  }

  push(chunk: Buffer): void {
    let all = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    while (all.length >= 4) {
      const length = 4 + all.readUInt32LE(0);
      if (length > LONGEST_FRAME_BYTES || length < HEADER_BYTES) throw new RangeError(`a frame has ${length} bytes`);
      if (all.length < length) break;
      this.#handle(all[4], all.readUInt32LE(5), all.subarray(HEADER_BYTES, length));
      all = all.subarray(length);
    }
    this.#rest = all;
  }
}
