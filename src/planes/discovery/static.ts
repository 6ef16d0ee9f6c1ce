import { Roster } from "./parts/roster.ts";
import type { DiscoveredWorker, DiscoveryListener, DiscoveryPlane, DiscoveryWatch } from "./types.ts";

/** Workers that are known beforehand, until somebody who knows better names others. */
export class StaticDiscovery implements DiscoveryPlane {
  readonly #rosters = new Set<Roster>();
  #workers: readonly DiscoveredWorker[];

  constructor(workers: readonly DiscoveredWorker[]) {
    this.#workers = workers;
  }

  watch(listener: DiscoveryListener): Promise<DiscoveryWatch> {
    const roster = new Roster(listener);
    this.#rosters.add(roster);
    roster.replace(this.#workers);
    return Promise.resolve({
      close: () => {
        roster.close();
        this.#rosters.delete(roster);
        return Promise.resolve();
      },
    });
  }

  /** Whether one of the workers has this name. */
  has(name: string): boolean {
    return this.#workers.some((worker) => worker.name === name);
  }

  /** These are all the workers there are, from now on. */
  replace(workers: readonly DiscoveredWorker[]): void {
    this.#workers = workers;
    for (const roster of this.#rosters) roster.replace(workers);
  }
}
