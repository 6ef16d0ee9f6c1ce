import { HISTORY_MS } from "./history.ts";

export type MarkKind = "policy" | "caches-reset" | "worker-lost" | "worker-back";

/** Something that makes values before and after it two different things. */
export interface Mark {
  readonly atMs: number;
  readonly kind: MarkKind;
  readonly label: string;
  /** When the rolling window holds only what was sent after it; null while requests from before are still under way. */
  readonly cleanAtMs: number | null;
}

/**
 * The marks on the charts. A window is mixed for longer than its own length: a request that was sent before the mark ends
 * after it, and is in the window for as long again.
 */
export class Marks {
  readonly #windowMs: number;
  #marks: Mark[] = [];

  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  get all(): readonly Mark[] {
    return this.#marks;
  }

  add(kind: MarkKind, label: string, atMs: number): void {
    this.#marks.push({ atMs, kind, label, cleanAtMs: null });
  }

  /** Looks whether everything from before a mark has ended, and forgets marks that no chart shows. */
  observe(nowMs: number, oldestInFlightMs: number | null): void {
    const oldestSentMs = nowMs - (oldestInFlightMs ?? 0);
    this.#marks = this.#marks
      .filter(({ atMs }) => atMs >= nowMs - HISTORY_MS)
      .map((mark) =>
        mark.cleanAtMs === null && oldestSentMs >= mark.atMs ? { ...mark, cleanAtMs: nowMs + this.#windowMs } : mark,
      );
  }
}
