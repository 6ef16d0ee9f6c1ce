/**
 * Reads msgpack where the shape is known and the bytes are not trusted. Nothing throws: the first thing that is not as it
 * should be sets `hasFailed`, after which every answer is empty, so a caller looks once, at the end. Integers of 64 bits come
 * out as two u32 lanes, because a JavaScript number would round them.
 */
export class MsgpackReader {
  at = 0;
  hasFailed = false;
  /** How many numbers `readCounts` read last. */
  count = 0;
  /** Lanes of the hash that `readHash` read last. */
  lo = 0;
  hi = 0;
  #bytes: Uint8Array = new Uint8Array(0);
  #view: DataView = new DataView(new ArrayBuffer(0));

  /** Starts over on other bytes. */
  open(bytes: Uint8Array): void {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.at = 0;
    this.hasFailed = false;
  }

  get isAtEnd(): boolean {
    return this.at === this.#bytes.length;
  }

  /** Whether the next value is nil, which is then passed over. */
  takeNil(): boolean {
    if (this.#bytes[this.at] !== 0xc0) return false;
    this.at++;
    return true;
  }

  /** Whether the next value is an array. */
  get isAtArray(): boolean {
    const tag = this.#bytes[this.at];
    return (tag & 0xf0) === 0x90 || tag === 0xdc || tag === 0xdd;
  }

  /** Whether the next value is a map. */
  get isAtMap(): boolean {
    const tag = this.#bytes[this.at];
    return (tag & 0xf0) === 0x80 || tag === 0xde || tag === 0xdf;
  }

  /** Whether the next value is text. */
  get isAtText(): boolean {
    const tag = this.#bytes[this.at];
    return (tag & 0xe0) === 0xa0 || (tag >= 0xd9 && tag <= 0xdb);
  }

  /** Length of the array that starts here; its elements follow. */
  readArray(): number {
    const tag = this.#take(1);
    if ((tag & 0xf0) === 0x90) return this.#credible(tag & 0x0f);
    if (tag === 0xdc) return this.#credible(this.#uint(2));
    if (tag === 0xdd) return this.#credible(this.#uint(4));
    return this.#fail();
  }

  /** Number of entries in the map that starts here; keys and values follow in turn. */
  readMap(): number {
    const tag = this.#take(1);
    if ((tag & 0xf0) === 0x80) return this.#credible(tag & 0x0f);
    if (tag === 0xde) return this.#credible(this.#uint(2));
    if (tag === 0xdf) return this.#credible(this.#uint(4));
    return this.#fail();
  }

  /** A whole number that a JavaScript number holds exactly, from 0 on. */
  readCount(): number {
    const tag = this.#take(1);
    if (tag < 0x80) return tag;
    if (tag >= 0xcc && tag <= 0xce) return this.#uint(1 << (tag - 0xcc));
    if (tag !== 0xcf) return this.#fail();
    const high = this.#uint(4);
    const low = this.#uint(4);
    return high < 0x20_0000 ? high * 2 ** 32 + low : this.#fail();
  }

  /** Reads an array of whole numbers below 2^32 into `out`, which is made larger if need be, and returns the one used. */
  readCounts(out: Uint32Array): Uint32Array {
    const count = this.readArray();
    const into = count <= out.length ? out : new Uint32Array(2 * count);
    const bytes = this.#bytes;
    let at = this.at;
    // By hand and without calls: most of what an engine sends are token ids.
    for (let i = 0; i < count; i++) {
      const tag = bytes[at];
      if (tag < 0x80) {
        into[i] = tag;
        at += 1;
      } else if (tag === 0xcd) {
        into[i] = (bytes[at + 1] << 8) | bytes[at + 2];
        at += 3;
      } else if (tag === 0xce) {
        into[i] = (bytes[at + 1] << 24) | (bytes[at + 2] << 16) | (bytes[at + 3] << 8) | bytes[at + 4];
        at += 5;
      } else if (tag === 0xcc) {
        into[i] = bytes[at + 1];
        at += 2;
      } else {
        this.#fail();
        break;
      }
    }
    if (at > bytes.length) this.#fail();
    this.at = at;
    this.count = count;
    return into;
  }

  /** A number of any kind. */
  readNumber(): number {
    const tag = this.#bytes[this.at];
    if (tag !== 0xca && tag !== 0xcb) return this.readCount();
    const width = tag === 0xca ? 4 : 8;
    if (!this.#has(1 + width)) return this.#fail();
    const from = this.at + 1;
    this.at = from + width;
    return width === 4 ? this.#view.getFloat32(from) : this.#view.getFloat64(from);
  }

  readText(): string {
    const length = this.#textLength();
    if (!this.#has(length)) return this.#failText();
    this.at += length;
    return UTF8.decode(this.#bytes.subarray(this.at - length, this.at));
  }

  /** Reads text and says which of some names it is, -1 if none; names are short and in ASCII. */
  readName(names: readonly Uint8Array[]): number {
    const length = this.#textLength();
    if (!this.#has(length)) return this.#fail() - 1;
    const from = this.at;
    this.at += length;
    for (let i = 0; i < names.length; i++) {
      if (names[i].length === length && this.#equals(from, names[i])) return i;
    }
    return -1;
  }

  /** Reads a block hash into `lo` and `hi`: an integer, signed or not, or the last 8 of some bytes. */
  readHash(): void {
    const tag = this.#take(1);
    this.hi = 0;
    if (tag < 0x80) this.lo = tag;
    else if (tag >= 0xe0) this.#negative(tag - 0x100);
    else if (tag >= 0xcc && tag <= 0xce) this.lo = this.#uint(1 << (tag - 0xcc));
    else if (tag === 0xcf || tag === 0xd3) this.#lanes();
    else if (tag === 0xd0) this.#negative((this.#uint(1) << 24) >> 24);
    else if (tag === 0xd1) this.#negative((this.#uint(2) << 16) >> 16);
    else if (tag === 0xd2) this.#negative(this.#uint(4) | 0);
    else if (tag >= 0xc4 && tag <= 0xc6) this.#hashBytes(this.#uint(1 << (tag - 0xc4)));
    else this.#fail();
  }

  /** Passes over one value of any kind and whatever is in it. */
  skip(): void {
    // Counts values still to be passed over instead of recursing: nesting cannot exhaust the stack.
    for (let left = 1; left > 0 && !this.hasFailed; left--) left += this.#skipHead();
  }

  /** The encoded bytes of one value, unread; the memory is not copied. */
  rawValue(): Uint8Array {
    const from = this.at;
    this.skip();
    return this.#bytes.subarray(from, this.at);
  }

  /** Passes over a value's head and plain content, and returns how many values are inside. */
  #skipHead(): number {
    const tag = this.#take(1);
    if (tag < 0x80 || tag >= 0xe0) return 0;
    if (tag < 0x90) return 2 * (tag & 0x0f);
    if (tag < 0xa0) return tag & 0x0f;
    if (tag < 0xc0) return this.#pass(tag & 0x1f);
    switch (tag) {
      case 0xc0:
      case 0xc2:
      case 0xc3:
        return 0;
      case 0xc4:
      case 0xd9:
        return this.#pass(this.#uint(1));
      case 0xc5:
      case 0xda:
        return this.#pass(this.#uint(2));
      case 0xc6:
      case 0xdb:
        return this.#pass(this.#uint(4));
      case 0xc7:
        return this.#pass(this.#uint(1) + 1);
      case 0xc8:
        return this.#pass(this.#uint(2) + 1);
      case 0xc9:
        return this.#pass(this.#uint(4) + 1);
      case 0xdc:
        return this.#credible(this.#uint(2));
      case 0xdd:
        return this.#credible(this.#uint(4));
      case 0xde:
        return 2 * this.#credible(this.#uint(2));
      case 0xdf:
        return 2 * this.#credible(this.#uint(4));
      default:
        return this.#pass(PLAIN_BYTES[tag - 0xca] ?? this.#fail());
    }
  }

  #pass(length: number): 0 {
    this.#take(length);
    return 0;
  }

  #textLength(): number {
    const tag = this.#take(1);
    if ((tag & 0xe0) === 0xa0) return tag & 0x1f;
    return tag >= 0xd9 && tag <= 0xdb ? this.#uint(1 << (tag - 0xd9)) : this.#fail();
  }

  #lanes(): void {
    this.hi = this.#uint(4);
    this.lo = this.#uint(4);
  }

  #negative(value: number): void {
    this.lo = value >>> 0;
    this.hi = value < 0 ? 0xffff_ffff : 0;
  }

  #hashBytes(length: number): void {
    if (length < 8 || !this.#has(length)) {
      this.#fail();
      return;
    }
    this.at += length - 8;
    this.#lanes();
  }

  /** An element takes a byte at least, so a count beyond what is left is a lie, and would cost time before it shows. */
  #credible(count: number): number {
    return count <= this.#bytes.length - this.at ? count : this.#fail();
  }

  #uint(width: number): number {
    if (!this.#has(width)) return this.#fail();
    const from = this.at;
    this.at += width;
    if (width === 1) return this.#bytes[from];
    return width === 2 ? this.#view.getUint16(from) : this.#view.getUint32(from);
  }

  /** The byte here, past which and its followers the reader goes. */
  #take(length: number): number {
    if (!this.#has(length)) return this.#fail();
    const byte = this.#bytes[this.at];
    this.at += length;
    return byte;
  }

  #has(length: number): boolean {
    return !this.hasFailed && this.at + length <= this.#bytes.length;
  }

  #equals(from: number, name: Uint8Array): boolean {
    for (let i = 0; i < name.length; i++) if (this.#bytes[from + i] !== name[i]) return false;
    return true;
  }

  #fail(): 0 {
    this.hasFailed = true;
    return 0;
  }

  #failText(): "" {
    this.hasFailed = true;
    return "";
  }
}

/** Bytes after the tags 0xca to 0xd8: floats, integers, fixed extensions. */
const PLAIN_BYTES: readonly number[] = [4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 2, 3, 5, 9, 17];

const UTF8 = new TextDecoder();
