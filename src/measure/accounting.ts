import { type Account, ACCOUNTS, type Accounting } from "../core/accounts.ts";
import { WarmpathError } from "../core/errors.ts";

/** Counts accounts; `offered` is counted on its own, so that a request lost on the way shows. */
export class AccountCounter {
  readonly #counts: Record<Account | "offered", number> = {
    offered: 0,
    completed: 0,
    shed: 0,
    rejected: 0,
    failed: 0,
    timedOut: 0,
    cancelled: 0,
    unfinished: 0,
  };

  add(account: Account, requests = 1): void {
    this.#counts.offered += requests;
    this.#counts[account] += requests;
  }

  merge(other: AccountCounter): void {
    for (const key of ["offered", ...ACCOUNTS] as const) this.#counts[key] += other.#counts[key];
  }

  total(): Accounting {
    return { ...this.#counts };
  }
}

/** Throws unless the accounts add up to what was offered, naming the difference. */
export function checkAccounting(accounting: Accounting, what: string): void {
  let sum = 0;
  for (const account of ACCOUNTS) sum += accounting[account];
  const missing = accounting.offered - sum;
  if (missing === 0) return;
  const difference = missing > 0 ? `${missing} in no account` : `${-missing} too many`;
  const parts = ACCOUNTS.map((account) => `${account} ${accounting[account]}`).join(" + ");
  const sums = `${accounting.offered} offered, ${parts} = ${sum}, ${difference}`;
  throw new WarmpathError("WP_INVALID_STATE", `the accounts of ${what} do not add up: ${sums}`);
}
