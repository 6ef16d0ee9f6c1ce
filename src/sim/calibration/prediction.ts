import { predictClosedLoop } from "../steady-state/closed-loop.ts";
import type { ConstantsCell } from "../timing/constants.ts";
import { StepTimer } from "../timing/step-timer.ts";
import { settingsOf } from "./row-settings.ts";
import { hasDocumentedClient, SATURATED_TTFT_MS, type SiliconRow } from "./silicon-row.ts";

/** A row that the model covers, with its prediction and signed errors in percent of the measured value. */
export interface PredictedRow {
  readonly covered: true;
  readonly row: SiliconRow;
  /** The name of the constants it was predicted with. */
  readonly cell: string;
  readonly model: string;
  readonly tpotMs: number;
  readonly ttftMs: number;
  readonly tpotErrorPct: number;
  readonly ttftErrorPct: number;
  readonly ttftSaturated: boolean;
  readonly documentedClient: boolean;
}

/** A row that no prediction is made for, and why. */
export interface UncoveredRow {
  readonly covered: false;
  readonly row: SiliconRow;
  readonly reason: string;
  readonly ttftSaturated: boolean;
  readonly documentedClient: boolean;
}

export type RowPrediction = PredictedRow | UncoveredRow;

/** Predicts one measured point: closed loop at its concurrency, lengths and tensor parallel; means over requests. */
export function predictRow(row: SiliconRow, cells?: readonly ConstantsCell[]): RowPrediction {
  const ttftSaturated = row.ttftMs >= SATURATED_TTFT_MS;
  const documentedClient = hasDocumentedClient(row);
  const settings = settingsOf(row, cells);
  if (typeof settings === "string") return { covered: false, row, reason: settings, ttftSaturated, documentedClient };
  const seen = predictClosedLoop(new StepTimer(settings.profile), settings.clients, settings.engine);
  return {
    covered: true,
    row,
    cell: settings.cell.name,
    model: settings.profile.model.name,
    tpotMs: seen.meanTpotMs,
    ttftMs: seen.meanTtftMs,
    tpotErrorPct: percent(seen.meanTpotMs, row.tpotMs),
    ttftErrorPct: percent(seen.meanTtftMs, row.ttftMs),
    ttftSaturated,
    documentedClient,
  };
}

function percent(predicted: number, measured: number): number {
  return (predicted / measured - 1) * 100;
}
