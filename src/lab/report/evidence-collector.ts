import type { RequestRecord } from "../../core/request-record.ts";
import { addGaps } from "../../measure/token-gaps.ts";
import { accountInWindow, isInWindow, type MeasurementWindow } from "../../measure/window.ts";
import type { ReportCell } from "./cell.ts";
import { type CellEvidence, collectEvidence, IdNumbers } from "./evidence.ts";
import { emptyGaps, groupKey, type PooledGaps } from "./groups.ts";

/** Windows are written to the microsecond, so the last request of a schedule may lie this far beyond the end. */
const ROUNDING_NS = 1000;

/** Turns the records of one cell after the other into evidence; no more than one cell's records are in memory. */
export class EvidenceCollector {
  readonly evidence: Map<string, CellEvidence> = new Map();
  readonly gaps: Map<string, PooledGaps> = new Map();
  readonly #ids: IdNumbers = new IdNumbers();

  /** Adds a cell; answers in one line why its records cannot be used, if so. */
  add(cell: ReportCell, records: readonly RequestRecord[]): string | undefined {
    if (this.evidence.has(cell.id)) return `records of ${cell.recordsId} are in two places of the file`;
    const window = matchingWindow(cell, records);
    if (window === undefined) {
      const found = cell.window === undefined ? 0 : countIn(records, cell.window);
      return `records of ${cell.recordsId}: ${found} requests are in its window, and its entry counts ${cell.accounting.offered}`;
    }
    this.evidence.set(cell.id, collectEvidence(records, window, cell.slo, this.#ids));
    const key = groupKey(cell);
    const gaps = this.gaps.get(key) ?? emptyGaps();
    this.gaps.set(key, gaps);
    for (const record of records) {
      if (record.tokenTimes === undefined || !isInWindow(record, window)) continue;
      addGaps(record.tokenTimes, accountInWindow(record, window) === "completed" ? gaps.completed : gaps.broken);
    }
    return undefined;
  }
}

/** The window in which there are as many requests as the cell's entry says. */
export function matchingWindow(
  { window, accounting }: ReportCell,
  records: readonly RequestRecord[],
): MeasurementWindow | undefined {
  if (window === undefined) return undefined;
  const wider = { ...window, endNs: window.endNs + ROUNDING_NS };
  return [window, wider].find((one) => countIn(records, one) === accounting.offered);
}

function countIn(records: readonly RequestRecord[], window: MeasurementWindow): number {
  let count = 0;
  for (const record of records) if (isInWindow(record, window)) count += 1;
  return count;
}
