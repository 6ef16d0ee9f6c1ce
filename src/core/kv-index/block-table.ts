const MAX_LOAD = 0.85;
/** A slot's distance from home is kept in a byte; insertion gives up before it overflows. */
const MAX_DISTANCE = 254;

/**
 * Finds a block by its sequence hash: Robin Hood hashing over two parallel arrays, five bytes a slot. The hashes
 * themselves stay in the pages. The distance byte tells which home a slot belongs to, so a probe reads a page only for
 * blocks of the same home, and a removal shifts its followers back without reading pages at all.
 */
export class BlockTable {
  readonly #ids: Int32Array;
  /** 0 for an empty slot, else 1 + distance from home. */
  readonly #distance: Uint8Array;
  readonly #hashes: Int32Array;
  readonly #scale: number;

  /** `hashes` holds the `[lo, hi]` lanes of block `id` at `2 * id`. */
  constructor(maxBlocks: number, hashes: Int32Array) {
    const homes = Math.ceil(maxBlocks / MAX_LOAD);
    // Slack behind the last home saves every probe the wrap-around.
    this.#ids = new Int32Array(homes + MAX_DISTANCE + 1);
    this.#distance = new Uint8Array(homes + MAX_DISTANCE + 1);
    this.#hashes = hashes;
    this.#scale = homes / 4294967296;
  }

  get bytes(): number {
    return this.#ids.byteLength + this.#distance.byteLength;
  }

  /** The block's id, or -1. */
  find(lo: number, hi: number): number {
    const distance = this.#distance;
    const hashes = this.#hashes;
    let slot = ((lo >>> 0) * this.#scale) | 0;
    for (let d = 1; distance[slot] >= d; d++, slot++) {
      if (distance[slot] !== d) continue;
      const id = this.#ids[slot];
      if (hashes[2 * id] === lo && hashes[2 * id + 1] === hi) return id;
    }
    return -1;
  }

  /**
   * Returns the id of a block with this hash, or takes `newId` for it and returns -1. A table this size fills up only
   * under hashes made to collide; the block that finds no place is then simply not found again, which an index may do.
   */
  findOrInsert(lo: number, hi: number, newId: number): number {
    const distance = this.#distance;
    const hashes = this.#hashes;
    let slot = ((lo >>> 0) * this.#scale) | 0;
    let d = 1;
    for (; distance[slot] >= d; d++, slot++) {
      if (distance[slot] !== d) continue;
      const id = this.#ids[slot];
      if (hashes[2 * id] === lo && hashes[2 * id + 1] === hi) return id;
    }
    this.#place(slot, d, newId);
    return -1;
  }

  /** Forgets a block that is known to be here under this hash. */
  remove(lo: number, id: number): void {
    const ids = this.#ids;
    const distance = this.#distance;
    let slot = ((lo >>> 0) * this.#scale) | 0;
    for (let d = 1; ids[slot] !== id || distance[slot] !== d; d++, slot++) {
      if (distance[slot] < d) return;
    }
    for (; distance[slot + 1] > 1; slot++) {
      ids[slot] = ids[slot + 1];
      distance[slot] = distance[slot + 1] - 1;
    }
    distance[slot] = 0;
  }

  #place(from: number, fromDistance: number, newId: number): void {
    const ids = this.#ids;
    const distance = this.#distance;
    let slot = from;
    let d = fromDistance;
    let id = newId;
    for (; d <= MAX_DISTANCE; d++, slot++) {
      const there = distance[slot];
      if (there === 0) {
        ids[slot] = id;
        distance[slot] = d;
        return;
      }
      if (there < d) {
        const displaced = ids[slot];
        ids[slot] = id;
        distance[slot] = d;
        id = displaced;
        d = there;
      }
    }
  }
}
