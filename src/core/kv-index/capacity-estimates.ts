/**
 * How many blocks each replica without events is believed to keep. An engine that reports fewer cached blocks than we
 * predicted has forgotten earlier than its KV size suggests (other clients, larger working memory), so the belief is cut by a
 * tenth; every prediction that holds lets it grow back by a hundred-and-twenty-eighth, up to the KV size.
 */
export class CapacityEstimates {
  /** Infinity for replicas whose evidence comes from events. */
  readonly #believed: Float64Array;
  readonly #kvBlocks: Float64Array;

  constructor(maxReplicas: number) {
    this.#believed = new Float64Array(maxReplicas).fill(Infinity);
    this.#kvBlocks = new Float64Array(maxReplicas).fill(Infinity);
  }

  isApproximate(replica: number): boolean {
    return this.#kvBlocks[replica] !== Infinity;
  }

  /** Blocks the replica is believed to keep. */
  of(replica: number): number {
    return this.#believed[replica];
  }

  /** KV blocks of all replicas without events. */
  total(): number {
    return this.#kvBlocks.reduce((sum, blocks) => (blocks === Infinity ? sum : sum + blocks), 0);
  }

  /** Takes a replica's KV size; what was learned about it stays unless the size is another. */
  set(replica: number, kvBlocks: number): void {
    if (this.#kvBlocks[replica] === kvBlocks) return;
    this.#kvBlocks[replica] = kvBlocks;
    this.#believed[replica] = kvBlocks;
  }

  reset(replica: number): void {
    this.set(replica, Infinity);
  }

  learn(replica: number, predictedBlocks: number, observedBlocks: number, heldBlocks: number): void {
    const believed = this.#believed[replica];
    const kvBlocks = this.#kvBlocks[replica];
    if (observedBlocks < predictedBlocks) {
      this.#believed[replica] = Math.max(1, Math.floor(Math.min(believed, heldBlocks) * 0.9));
    } else if (predictedBlocks > 0) {
      this.#believed[replica] = Math.min(kvBlocks, believed + Math.max(1, Math.floor(kvBlocks / 128)));
    }
  }
}
