import { replicaName } from "../core/fleet.ts";
import type { DiscoveredWorker } from "../planes/discovery/types.ts";

/** A replica in the directory, under the number that the router knows it by. */
export interface ListedWorker {
  readonly replica: number;
  /** Name of the replica: the worker's, and the rank where it is not the only one. */
  readonly name: string;
  readonly worker: string;
  /** Origin that requests go to. */
  readonly url: string;
  /** Undefined where the worker has one rank alone. */
  readonly dpRank: number | undefined;
}

/** Knows which address belongs to which replica, and what workers say they serve. */
export class WorkerDirectory {
  readonly #replicas = new Map<number, ListedWorker>();
  readonly #models = new Map<string, readonly string[]>();
  readonly #adapters = new Map<string, readonly string[]>();
  /** Of all workers; asked for with every request. */
  #adapterNames: readonly string[] = [];
  readonly #listeners = new Set<() => void>();

  joined(replica: number, { name: worker, url, model, dpRanks = 1 }: DiscoveredWorker, dpRank: number): void {
    const name = replicaName({ worker, dpRank });
    const origin = new URL(url).origin;
    this.#replicas.set(replica, { replica, name, worker, url: origin, dpRank: dpRanks > 1 ? dpRank : undefined });
    if (model !== undefined && !this.#models.has(worker)) this.#models.set(worker, [model]);
    this.#changed();
  }

  left(replica: number, { name }: DiscoveredWorker): void {
    this.#replicas.delete(replica);
    if (this.list().every(({ worker }) => worker !== name)) {
      this.#models.delete(name);
      this.#adapters.delete(name);
    }
    this.#changed();
  }

  get(replica: number): ListedWorker | undefined {
    return this.#replicas.get(replica);
  }

  list(): readonly ListedWorker[] {
    return [...this.#replicas.values()];
  }

  /** Every model that some worker serves, each once. */
  models(): readonly string[] {
    return namesIn(this.#models);
  }

  /** Those of them that are adapters. */
  adapters(): readonly string[] {
    return this.#adapterNames;
  }

  modelsOf(worker: string): readonly string[] {
    return this.#models.get(worker) ?? [];
  }

  /** Notes what a worker says it serves, and what of it are adapters. */
  setModels(worker: string, models: readonly string[], adapters: readonly string[] = []): void {
    if (this.list().every((listed) => listed.worker !== worker)) return;
    const isKnown = isSame(this.modelsOf(worker), models) && isSame(this.#adapters.get(worker) ?? [], adapters);
    if (isKnown) return;
    this.#models.set(worker, models);
    this.#adapters.set(worker, adapters);
    this.#changed();
  }

  /** Calls back after every change, until called off. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #changed(): void {
    this.#adapterNames = namesIn(this.#adapters);
    for (const listener of this.#listeners) listener();
  }
}

function namesIn(byWorker: ReadonlyMap<string, readonly string[]>): string[] {
  return [...new Set([...byWorker.values()].flat())].sort();
}

function isSame(one: readonly string[], other: readonly string[]): boolean {
  return one.join("\n") === other.join("\n");
}
