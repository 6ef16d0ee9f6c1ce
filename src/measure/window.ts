import type { Nanoseconds } from "../core/clock.ts";
import { WarmpathError } from "../core/errors.ts";
import type { Account } from "../core/accounts.ts";
import type { RequestRecord } from "../core/request-record.ts";

/**
 * What is measured: requests meant to be sent in [startNs, endNs), each followed until `drainNs` after the end. What is
 * not settled by then is unfinished, however it ended later: an unbounded drain would let an overloaded arm catch up.
 */
export interface MeasurementWindow {
  readonly startNs: Nanoseconds;
  readonly endNs: Nanoseconds;
  readonly drainNs: Nanoseconds;
}

/** Refuses a window that nothing can be in. */
export function checkWindow({ startNs, endNs, drainNs }: MeasurementWindow): void {
  if (endNs > startNs && drainNs >= 0) return;
  const got = `got ${startNs} to ${endNs} + ${drainNs} ns`;
  throw new WarmpathError("WP_INVALID_STATE", `a window must end after it starts, with a drain of 0 or more, ${got}`);
}

/** Whether a request belongs to the window: by when it should have been sent, whatever happened then. */
export function isInWindow(record: RequestRecord, window: MeasurementWindow): boolean {
  return record.intendedNs >= window.startNs && record.intendedNs < window.endNs;
}

/** The account a request is in when the drain is over. */
export function accountInWindow(record: RequestRecord, window: MeasurementWindow): Account {
  const { endNs } = record;
  return endNs === undefined || endNs > window.endNs + window.drainNs ? "unfinished" : record.account;
}

/** Cuts a window into `count` equal ones, each with the drain of the whole. */
export function subWindows(window: MeasurementWindow, count: number): MeasurementWindow[] {
  const { startNs, endNs } = window;
  const edge = (i: number): Nanoseconds => startNs + Math.round(((endNs - startNs) * i) / count);
  return Array.from({ length: count }, (_, i) => ({
    startNs: edge(i),
    endNs: edge(i + 1),
    // All are followed until the same moment; otherwise an early snapshot would lose what a late one may finish.
    drainNs: endNs + window.drainNs - edge(i + 1),
  }));
}
