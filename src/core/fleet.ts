import { WarmpathError } from "./errors.ts";
import { hashString } from "./rng.ts";
import type { ReplicaSpec, ReplicaState } from "./replica.ts";

/** A replica's name, as records and headers have it: the worker, and the rank where it is not the only one. */
export function replicaName(spec: Pick<ReplicaSpec, "worker" | "dpRank">): string {
  return spec.dpRank === undefined || spec.dpRank === 0 ? spec.worker : `${spec.worker}#${spec.dpRank}`;
}

/** Which replicas there are, under which index, and whether they may be given work. */
export class Fleet {
  readonly maxReplicas: number;
  /** 32-bit hash of the name: the same however replicas are numbered. */
  readonly key: Uint32Array;
  readonly #specs: (ReplicaSpec | undefined)[];
  readonly #states: ReplicaState[];
  readonly #indexOf = new Map<string, number>();

  constructor(maxReplicas: number) {
    this.maxReplicas = maxReplicas;
    this.key = new Uint32Array(maxReplicas);
    this.#specs = Array.from({ length: maxReplicas }, () => undefined);
    this.#states = Array.from({ length: maxReplicas }, (): ReplicaState => "down");
  }

  get size(): number {
    return this.#indexOf.size;
  }

  /** Indices of all replicas, in the order of their numbers. */
  indices(): number[] {
    return [...this.#indexOf.values()].sort((a, b) => a - b);
  }

  add(spec: ReplicaSpec): number {
    const name = replicaName(spec);
    if (this.#indexOf.has(name)) {
      throw new WarmpathError("WP_INVALID_STATE", `replica ${name} is already in the fleet; remove it first`);
    }
    const index = this.#specs.indexOf(undefined);
    if (index < 0) {
      const advice = `the fleet is full at maxReplicas ${this.maxReplicas}; raise it to add ${name}`;
      throw new WarmpathError("WP_CAPACITY_EXCEEDED", advice);
    }
    this.#specs[index] = spec;
    this.#states[index] = "ready";
    this.#indexOf.set(name, index);
    this.key[index] = hashString(name);
    return index;
  }

  remove(replica: number): void {
    this.#indexOf.delete(this.name(replica));
    this.#specs[replica] = undefined;
    this.#states[replica] = "down";
  }

  spec(replica: number): ReplicaSpec {
    const spec = this.#specs[replica];
    if (spec === undefined) throw new WarmpathError("WP_UNKNOWN_REPLICA", `no replica has the index ${replica}`);
    return spec;
  }

  name(replica: number): string {
    return replicaName(this.spec(replica));
  }

  /** The replica with this name, or undefined. */
  find(name: string): number | undefined {
    return this.#indexOf.get(name);
  }

  has(replica: number): boolean {
    return this.#specs[replica] !== undefined;
  }

  state(replica: number): ReplicaState {
    return this.#states[replica];
  }

  setState(replica: number, state: ReplicaState): void {
    this.spec(replica);
    this.#states[replica] = state;
  }
}
