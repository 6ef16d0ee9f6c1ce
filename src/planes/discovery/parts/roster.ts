import { isDeepStrictEqual } from "node:util";
import type { DiscoveredWorker, DiscoveryListener } from "../types.ts";

/** Knows which workers were told of, and tells only what is new. */
export class Roster {
  readonly #listener: DiscoveryListener;
  readonly #workers = new Map<string, DiscoveredWorker>();
  #isClosed = false;
  #lastProblem: string | undefined;

  constructor(listener: DiscoveryListener) {
    this.#listener = listener;
  }

  /** These are all the workers there are. */
  replace(workers: readonly DiscoveredWorker[]): void {
    this.#lastProblem = undefined;
    const names = new Set(workers.map(({ name }) => name));
    // Leavers first: a newcomer may need their place.
    for (const name of this.#workers.keys()) if (!names.has(name)) this.remove(name);
    for (const worker of workers) this.set(worker);
  }

  set(worker: DiscoveredWorker): void {
    if (this.#isClosed) return;
    const before = this.#workers.get(worker.name);
    if (isDeepStrictEqual(before, worker)) return;
    this.#workers.set(worker.name, worker);
    if (before === undefined) this.#listener.appeared(worker);
    else this.#listener.changed(worker);
  }

  remove(name: string): void {
    if (!this.#isClosed && this.#workers.delete(name)) this.#listener.left(name);
  }

  /** Says what went wrong, once while it stays the same. */
  problem(message: string): void {
    if (this.#isClosed || message === this.#lastProblem) return;
    this.#lastProblem = message;
    this.#listener.problem?.(message);
  }

  /** Tells nothing any more. */
  close(): void {
    this.#isClosed = true;
  }
}
