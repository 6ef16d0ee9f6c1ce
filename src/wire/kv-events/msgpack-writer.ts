/** Writes msgpack in its shortest form, as engines do; 64-bit hashes are given as two u32 lanes. */
export class MsgpackWriter {
  #bytes = new Uint8Array(1024);
  #view = new DataView(this.#bytes.buffer);
  #at = 0;

  /** A copy of all that was written; the writer starts over. */
  finish(): Uint8Array {
    const done = this.#bytes.slice(0, this.#at);
    this.#at = 0;
    return done;
  }

  nil(): void {
    this.#byte(0xc0);
  }

  array(length: number): void {
    this.#head(length, 0x90, 0x0f, 0xdc);
  }

  map(entries: number): void {
    this.#head(entries, 0x80, 0x0f, 0xde);
  }

  text(value: string): void {
    const bytes = UTF8.encode(value);
    if (bytes.length < 32) this.#byte(0xa0 | bytes.length);
    else if (bytes.length < 0x100) this.#tagged(0xd9, bytes.length, 1);
    else if (bytes.length < 0x1_0000) this.#tagged(0xda, bytes.length, 2);
    else this.#tagged(0xdb, bytes.length, 4);
    this.#reserve(bytes.length);
    this.#bytes.set(bytes, this.#at);
    this.#at += bytes.length;
  }

  /** A whole number from 0 to 2^32 - 1. */
  count(value: number): void {
    if (value < 0x80) this.#byte(value);
    else if (value < 0x100) this.#tagged(0xcc, value, 1);
    else if (value < 0x1_0000) this.#tagged(0xcd, value, 2);
    else this.#tagged(0xce, value, 4);
  }

  float(value: number): void {
    this.#reserve(9);
    this.#bytes[this.#at] = 0xcb;
    this.#view.setFloat64(this.#at + 1, value);
    this.#at += 9;
  }

  /** An unsigned integer of 64 bits. */
  hash(lo: number, hi: number): void {
    if (hi === 0) {
      this.count(lo);
      return;
    }
    this.#tagged(0xcf, hi, 4);
    this.#reserve(4);
    this.#view.setUint32(this.#at, lo);
    this.#at += 4;
  }

  #head(length: number, short: number, shortMost: number, long: number): void {
    if (length <= shortMost) this.#byte(short | length);
    else if (length < 0x1_0000) this.#tagged(long, length, 2);
    else this.#tagged(long + 1, length, 4);
  }

  #byte(value: number): void {
    this.#reserve(1);
    this.#bytes[this.#at++] = value;
  }

  #tagged(tag: number, value: number, width: 1 | 2 | 4): void {
    this.#reserve(1 + width);
    this.#bytes[this.#at] = tag;
    if (width === 1) this.#bytes[this.#at + 1] = value;
    else if (width === 2) this.#view.setUint16(this.#at + 1, value);
    else this.#view.setUint32(this.#at + 1, value);
    this.#at += 1 + width;
  }

  #reserve(bytes: number): void {
    if (this.#at + bytes <= this.#bytes.length) return;
    const larger = new Uint8Array(Math.max(2 * this.#bytes.length, this.#at + bytes));
    larger.set(this.#bytes);
    this.#bytes = larger;
    this.#view = new DataView(larger.buffer);
  }
}

const UTF8 = new TextEncoder();
