import { mix32, unitInterval } from "../rng.ts";

/**
 * What a decision's draws start from. Hoisting it out of the loop over candidates leaves one round of mixing for each.
 */
export function drawSeed(chance: number): number {
  return mix32(chance);
}

/**
 * A replica's 32 random bits under a seed. They hang on the replica's key, not on its index, so numbering the workers
 * differently does not change who is drawn; and mixing is a bijection, so different keys never draw the same bits.
 */
export function drawBits(seed: number, key: number): number {
  return mix32(seed ^ key);
}

/** The same draw as a uniform number in (0, 1). */
export function drawUniform(seed: number, key: number): number {
  return unitInterval(mix32(seed ^ key));
}
