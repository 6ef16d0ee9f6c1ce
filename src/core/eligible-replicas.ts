import type { Fleet } from "./fleet.ts";
import type { PlacementView } from "./placement-view.ts";
import type { FilteredReplicas } from "./record/decision-record.ts";

const NO_NAMES: readonly string[] = [];

/** Who may be given requests: noted when the fleet changes, so that no decision has to ask. */
export class EligibleReplicas {
  #names: readonly string[] = [];
  #ready: readonly number[] = [];
  /** What most decisions filter: nobody but those who are not ready. */
  #noneFiltered: FilteredReplicas = { notReady: NO_NAMES, tried: NO_NAMES, busy: NO_NAMES };

  /** Names by replica. */
  get names(): readonly string[] {
    return this.#names;
  }

  /** Takes note of who is in the fleet and who is ready. */
  changed(fleet: Fleet): void {
    const names: string[] = [];
    for (const replica of fleet.indices()) names[replica] = fleet.name(replica);
    this.#names = names;
    const isReady = (replica: number): boolean => fleet.state(replica) === "ready";
    this.#ready = fleet.indices().filter(isReady);
    const notReady = fleet.indices().flatMap((replica) => (isReady(replica) ? [] : [names[replica]]));
    this.#noneFiltered = { notReady, tried: NO_NAMES, busy: NO_NAMES };
  }

  /** Those that could be given work, but for the ones a request has tried. */
  ready(tried: readonly number[]): readonly number[] {
    return this.#ready.filter((replica) => !tried.includes(replica));
  }

  /** Fills the view's candidates: ready, not tried before, and not busy. Returns who was left out. */
  fill(view: PlacementView, triedBefore: readonly number[], isBusy: (replica: number) => boolean): FilteredReplicas {
    let tried = NO_NAMES;
    let busy: string[] | undefined;
    view.clearCandidates();
    for (const replica of this.#ready) {
      if (triedBefore.length > 0 && triedBefore.includes(replica)) tried = [...tried, this.#names[replica]];
      else if (isBusy(replica)) (busy ??= []).push(this.#names[replica]);
      else view.addCandidate(replica);
    }
    if (tried === NO_NAMES && busy === undefined) return this.#noneFiltered;
    return { ...this.#noneFiltered, tried, busy: busy ?? NO_NAMES };
  }
}
