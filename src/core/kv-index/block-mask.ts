/** Masks of the 16 blocks of a page: bit `i` stands for its block `i`. */

/** The position of the lowest bit of a mask that has one. */
export function lowestBit(mask: number): number {
  return 31 - Math.clz32(mask & -mask);
}

export function bitCount(mask: number): number {
  let v = mask - ((mask >>> 1) & 0x5555);
  v = (v & 0x3333) + ((v >>> 2) & 0x3333);
  v = (v + (v >>> 4)) & 0x0f0f;
  return (v + (v >>> 8)) & 0x1f;
}

/** The `count` highest bits of a mask. */
export function highestBits(mask: number, count: number): number {
  let rest = mask;
  for (let left = bitCount(mask) - count; left > 0; left--) rest &= rest - 1;
  return rest;
}

/** The `count` lowest bits of a mask. */
export function lowestBits(mask: number, count: number): number {
  return mask & ~highestBits(mask, bitCount(mask) - count);
}
