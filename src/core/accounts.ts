import { WarmpathError } from "./errors.ts";

/** How a request can end; each one ends in exactly one of these accounts. */
export type Outcome = "completed" | "shed" | "rejected" | "failed" | "timedOut" | "cancelled" | "unfinished";

export const OUTCOMES: readonly Outcome[] = [
  "completed",
  "shed",
  "rejected",
  "failed",
  "timedOut",
  "cancelled",
  "unfinished",
];

/** Requests by how they ended. The outcomes add up to `offered`; what has not ended yet is `unfinished`. */
export type Accounting = Readonly<Record<Outcome | "offered", number>>;

/** Counts every offered request once when it comes and once when it ends. */
export class Accounts {
  readonly #ended: Record<Exclude<Outcome, "unfinished">, number> = {
    completed: 0,
    shed: 0,
    rejected: 0,
    failed: 0,
    timedOut: 0,
    cancelled: 0,
  };
  #offered = 0;
  #open = 0;

  offer(): void {
    this.#offered++;
    this.#open++;
  }

  end(outcome: Exclude<Outcome, "unfinished">): void {
    if (this.#open === 0)
      throw new WarmpathError("WP_INVALID_STATE", `a request ended as ${outcome} that was not open`);
    this.#open--;
    this.#ended[outcome]++;
  }

  get totals(): Accounting {
    return { offered: this.#offered, ...this.#ended, unfinished: this.#open };
  }
}
