import { WarmpathError } from "./errors.ts";

/** The accounts a request can end in; it ends in exactly one, and together they make up what was offered. */
export type Account = "completed" | "shed" | "rejected" | "failed" | "timedOut" | "cancelled" | "unfinished";

/**
 * The accounts in the order in which reports list them. `shed`: turned away by the router; `rejected`: by the worker;
 * `timedOut`: given up by us after a deadline; `cancelled`: given up by the client; `unfinished`: still under way when
 * the run, or the drain after its window, was over.
 */
export const ACCOUNTS: readonly Account[] = [
  "completed",
  "shed",
  "rejected",
  "failed",
  "timedOut",
  "cancelled",
  "unfinished",
];

/** Requests by how they ended. The accounts add up to `offered`; what has not ended yet is `unfinished`. */
export type Accounting = Readonly<Record<Account | "offered", number>>;

/** Counts every offered request once when it comes and once when it ends. */
export class Accounts {
  readonly #ended: Record<Exclude<Account, "unfinished">, number> = {
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

  end(account: Exclude<Account, "unfinished">): void {
    if (this.#open === 0)
      throw new WarmpathError("WP_INVALID_STATE", `a request ended as ${account} that was not open`);
    this.#open--;
    this.#ended[account]++;
  }

  get totals(): Accounting {
    return { offered: this.#offered, ...this.#ended, unfinished: this.#open };
  }
}
