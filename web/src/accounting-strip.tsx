import { ACCOUNT_NAMES, type Accounting, accountingSum } from "../../src/dashboard/protocol.ts";
import { formatCount } from "./format.ts";

const ACCOUNTS = Object.keys(ACCOUNT_NAMES) as (keyof typeof ACCOUNT_NAMES)[];

/** Every request is in one account, and the strip shows that they add up. */
export function AccountingStrip({ accounting }: { readonly accounting: Accounting }) {
  const sum = accountingSum(accounting);
  const isRight = sum === accounting.offered;
  return (
    <section class={`accounting ${isRight ? "" : "wrong"}`} aria-label="Accounts" data-testid="accounting">
      <span class="offered">
        offered <b data-account="offered">{formatCount(accounting.offered)}</b>
      </span>
      {ACCOUNTS.map((account, at) => (
        <span key={account} class={`account ${account} ${accounting[account] === 0 ? "zero" : ""}`}>
          <i aria-hidden="true">{at === 0 ? "=" : "+"}</i>
          {ACCOUNT_NAMES[account]} <b data-account={account}>{formatCount(accounting[account])}</b>
        </span>
      ))}
      <span class="sum">{isRight ? "✓ adds up" : `adds up to ${formatCount(sum)}`}</span>
    </section>
  );
}
