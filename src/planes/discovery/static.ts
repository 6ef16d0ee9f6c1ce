import { Roster } from "./parts/roster.ts";
import type { DiscoveredWorker, DiscoveryListener, DiscoveryPlane, DiscoveryWatch } from "./types.ts";

/** Workers that are known beforehand and never change. */
export class StaticDiscovery implements DiscoveryPlane {
  readonly #workers: readonly DiscoveredWorker[];

  constructor(workers: readonly DiscoveredWorker[]) {
    this.#workers = workers;
  }

  watch(listener: DiscoveryListener): Promise<DiscoveryWatch> {
    new Roster(listener).replace(this.#workers);
    return Promise.resolve({ close: () => Promise.resolve() });
  }
}
