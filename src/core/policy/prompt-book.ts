import type { Nanoseconds } from "../clock.ts";

/** What is foreseen of a prompt when it is placed. */
export interface ForeseenPrompt {
  /** Whether others wait there already, and if not, how long the step under way still takes. */
  readonly isBehindOthers: boolean;
  readonly untilStepNs: Nanoseconds;
  /** Until its first token. */
  readonly doneInNs: Nanoseconds;
  /** Time to compute all that then waits at the replica, itself included. */
  readonly pendingNs: Nanoseconds;
}

interface Page {
  placedNs: Nanoseconds;
  isAlone: boolean;
  doneInNs: Nanoseconds;
  doneNs: Nanoseconds;
  pendingNs: Nanoseconds;
  /** When the youngest batch begins, how many prompts are in it, and when the first of them was placed. */
  startsNs: Nanoseconds;
  together: number;
  eldestNs: Nanoseconds;
}

/** How far one first token moves the lateness, and how far off one may be at most. */
const LATENESS_GAIN = 0.05;
const MOST_LATE = 4;

/**
 * The prompts on their way at each replica: how much of them is still to be computed by now, and which of them a newcomer
 * would be computed with. Engines tell neither before a first token, so it is what was foreseen, as late as that usually is.
 */
export class PromptBook {
  readonly #pages: (Page | undefined)[] = [];
  /** How much later first tokens come than was foreseen, where nobody was in the way: networks and schedulers take time too. */
  #lateness = 1;

  placed(replica: number, nowNs: Nanoseconds, foreseen: ForeseenPrompt): void {
    const { isBehindOthers, untilStepNs, doneInNs, pendingNs } = foreseen;
    const page = (this.#pages[replica] ??= blankPage());
    if (nowNs <= page.startsNs) page.together += 1;
    else {
      page.together = 1;
      page.eldestNs = nowNs;
      page.startsNs = isBehindOthers ? Math.max(nowNs, page.doneNs) : nowNs + untilStepNs;
    }
    page.placedNs = nowNs;
    page.isAlone = !isBehindOthers;
    page.doneInNs = doneInNs;
    page.doneNs = nowNs + this.#lateness * doneInNs;
    page.pendingNs = pendingNs;
  }

  firstToken(replica: number, nowNs: Nanoseconds, sincePlacedNs: Nanoseconds): void {
    const page = this.#pages[replica];
    if (page === undefined || !page.isAlone || page.placedNs !== nowNs - sincePlacedNs || !(page.doneInNs > 0)) return;
    const late = Math.max(1 / MOST_LATE, Math.min(MOST_LATE, sincePlacedNs / page.doneInNs));
    this.#lateness *= (late / this.#lateness) ** LATENESS_GAIN;
  }

  /**
   * What is left of `pendingNs` of prompts that wait at a replica. Who is late by a while will be late by as much again. What
   * others have sent there is not in the book, and counts whole.
   */
  leftNs(replica: number, nowNs: Nanoseconds, pendingNs: Nanoseconds): Nanoseconds {
    const page = this.#pages[replica];
    if (page === undefined) return pendingNs;
    const fromOthersNs = Math.max(0, pendingNs - page.pendingNs);
    return Math.min(pendingNs, Math.abs(page.doneNs - nowNs) + fromOthersNs);
  }

  /** How many prompts a newcomer would be computed with, and so make later. */
  together(replica: number, nowNs: Nanoseconds): number {
    const page = this.#pages[replica];
    return page !== undefined && nowNs <= page.startsNs ? page.together : 0;
  }

  /** For how long the eldest of those has waited by now. */
  waitedNs(replica: number, nowNs: Nanoseconds): Nanoseconds {
    const page = this.#pages[replica];
    return page !== undefined && nowNs <= page.startsNs ? nowNs - page.eldestNs : 0;
  }

  forget(replica: number): void {
    this.#pages[replica] = undefined;
  }
}

function blankPage(): Page {
  return { placedNs: 0, isAlone: false, doneInNs: 0, doneNs: 0, pendingNs: 0, startsNs: -1, together: 0, eldestNs: 0 };
}
