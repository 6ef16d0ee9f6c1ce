import { KvIndex } from "../kv-index/kv-index.ts";

/**
 * How much of a prompt the requests in flight on each replica already hold, for policies that count shared blocks once.
 * A KV index of its own, in which a block's copies are the requests that hold it.
 */
export class ActivePrefixes {
  readonly #index: KvIndex;

  constructor(maxReplicas: number, maxBlocks: number) {
    this.#index = new KvIndex({ maxReplicas, maxBlocks, maxCopies: maxBlocks, maxExpectations: 1 });
  }

  add(replica: number, sequence: Uint32Array, blocks: number): void {
    this.#index.apply(replica, "device", { kind: "stored", parent: null, engine: cut(sequence, blocks), local: null });
  }

  remove(replica: number, sequence: Uint32Array, blocks: number): void {
    this.#index.apply(replica, "device", { kind: "removed", engine: cut(sequence, blocks) });
  }

  /** Leading blocks of the prompt that are held by requests in flight, by replica. */
  depths(sequence: Uint32Array, blocks: number): Int32Array {
    return this.#index.match(sequence, blocks).confirmed;
  }

  clearReplica(replica: number): void {
    this.#index.clearReplica(replica);
  }
}

function cut(sequence: Uint32Array, blocks: number): Uint32Array {
  return sequence.length === 2 * blocks ? sequence : sequence.subarray(0, 2 * blocks);
}
