import type { RequestRecord } from "../../core/request-record.ts";
import { accountInWindow, type MeasurementWindow } from "../../measure/window.ts";
import type { Refusal } from "./types.ts";

/** Groups the requests that did not complete by account, status, code and message; most frequent first. */
export function refusalsOf(records: Iterable<RequestRecord>, window: MeasurementWindow): Refusal[] {
  const groups = new Map<string, Refusal>();
  for (const record of records) {
    const account = accountInWindow(record, window);
    if (account === "completed") continue;
    const status = record.failure?.status ?? null;
    const code = record.shedReason?.code ?? null;
    // The reason's own message has numbers that differ from request to request.
    const message = record.failure?.message ?? record.shedReason?.knob ?? "";
    const key = JSON.stringify([account, status, code, message]);
    const count = (groups.get(key)?.count ?? 0) + 1;
    groups.set(key, { account, status, code, message, count });
  }
  return [...groups]
    .sort(([a, { count: x }], [b, { count: y }]) => y - x || (a < b ? -1 : 1))
    .map(([, group]) => group);
}
