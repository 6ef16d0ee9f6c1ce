import type { DiscoveredWorker, DiscoveryListener } from "../planes/discovery/types.ts";

/**
 * Lets several discovery planes fill one fleet. A name belongs to the first of them that tells of it, in the order in which they
 * were added: what others find under it neither replaces that worker nor takes it away, and counts only once the first has lost it.
 */
export class DiscoverySources {
  readonly #listener: DiscoveryListener;
  readonly #sources: Map<string, DiscoveredWorker>[] = [];

  constructor(listener: DiscoveryListener) {
    this.#listener = listener;
  }

  /** What a plane is to tell; it counts less than those added before it. */
  add(): DiscoveryListener {
    const source = new Map<string, DiscoveredWorker>();
    this.#sources.push(source);
    return {
      appeared: (worker) => this.#found(source, worker),
      changed: (worker) => this.#found(source, worker),
      left: (name) => this.#lost(source, name),
      problem: (message) => this.#listener.problem?.(message),
    };
  }

  #found(source: Map<string, DiscoveredWorker>, worker: DiscoveredWorker): void {
    const { name } = worker;
    const before = this.#counting(name);
    source.set(name, worker);
    const counting = this.#counting(name);
    if (before === undefined) this.#listener.appeared(worker);
    else if (counting === worker) this.#listener.changed(worker);
    const leftOut = counting === worker ? this.#others(worker) : [worker];
    for (const { url } of leftOut) {
      if (url === counting?.url) continue;
      this.#listener.problem?.(`two workers are named ${name}: ${counting?.url} counts, ${url} is left out`);
    }
  }

  #lost(source: Map<string, DiscoveredWorker>, name: string): void {
    const before = this.#counting(name);
    source.delete(name);
    const after = this.#counting(name);
    if (after === before) return;
    if (after === undefined) this.#listener.left(name);
    else this.#listener.changed(after);
  }

  /** The worker that a name stands for now. */
  #counting(name: string): DiscoveredWorker | undefined {
    return this.#sources.find((source) => source.has(name))?.get(name);
  }

  #others(worker: DiscoveredWorker): DiscoveredWorker[] {
    return this.#sources.flatMap((source) => source.get(worker.name) ?? []).filter((other) => other !== worker);
  }
}
