/**
 * How a page lies in memory, as 32-bit words:
 *
 *     16 × [hash lo, hash hi], flags, link, 3 × [lane, masks]
 *
 * The header comes last so that the last block's hash, which a match compares first, lies beside it. `link` leads to the
 * first chunk of further holders, which is `spare, link, 7 × [lane, masks]`: behind their first word, both look alike.
 *
 * Whoever is in a hurry makes these constants of its own, `const { LINK } = layout`: those are compiled in as numbers,
 * whereas imported and exported ones are read and checked at every use.
 */
export const PAGE_BLOCKS = 16;
export const CHUNK_WORDS = 16;
const PAGE_WORDS = 40;
const HEADER = 32;

/** From the header of a page, or the start of a chunk. */
export const LINK = 1;
export const FIRST_HOLDER = 2;
export const PAGE_HOLDERS_END = 8;

/** In `flags`: the number of blocks, the mark that the clock hand clears, and 1 + the page that followed last time. */
export const USED = 0x1f;
export const REFERENCED = 0x20;
export const FOLLOWER_SHIFT = 8;

/** Where a page is. */
export function pageAt(page: number): number {
  return page * PAGE_WORDS;
}

/** Where the `[lo, hi]` lanes of a block are. */
export function hashAt(block: number): number {
  return (block >> 4) * PAGE_WORDS + ((block & 15) << 1);
}

/** Where the header of a page is. */
export function headerAt(page: number): number {
  return page * PAGE_WORDS + HEADER;
}

/**
 * How many of `limit` blocks from `at` on agree with a prompt from `from` on. A sequence hash covers all blocks before it, so
 * agreement at one block means agreement at every earlier one: the last is looked at first, then halves.
 */
export function commonBlocks(
  words: Int32Array,
  at: number,
  sequence: Uint32Array,
  from: number,
  limit: number,
): number {
  let agreed = 0;
  let open = limit;
  for (let probe = limit; agreed < open; probe = (agreed + open + 1) >> 1) {
    const i = 2 * (probe - 1);
    if (words[at + i] === (sequence[from + i] | 0) && words[at + i + 1] === (sequence[from + i + 1] | 0))
      agreed = probe;
    else open = probe - 1;
  }
  return agreed;
}
