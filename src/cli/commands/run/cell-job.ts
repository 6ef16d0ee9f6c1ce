import { join } from "node:path";
import type { Cell } from "../../../lab/experiment/cells.ts";
import { measureCell } from "../../../lab/experiment/target.ts";
import { RecordsWriter } from "../../../lab/results/records-file.ts";
import type { ArmFacts, CellResult } from "../../../lab/results/types.ts";
import { simulateCell, type SimulationSetting } from "./simulated-cell.ts";

/** What a thread needs once, before any cell. */
export interface JobSetting extends SimulationSetting {
  readonly cells: readonly Cell[];
  /** Numbers of the cells that are to be run. */
  readonly missing: readonly number[];
  /** Where the records of each cell are put; none are kept without it. */
  readonly recordsFolder: string | undefined;
}

/** A cell that is done. */
export interface FinishedCell {
  readonly index: number;
  readonly result: CellResult;
  /** Wall time. */
  readonly seconds: number;
  /** What a live target told of the arm, and the hashes of the prompts it got. */
  readonly facts?: ArmFacts | undefined;
  readonly sent?: readonly (readonly [id: string, hash: string])[] | undefined;
}

/** Runs one cell and writes its records. */
export async function runCellJob(setting: JobSetting, at: number): Promise<FinishedCell> {
  const startedMs = performance.now();
  const index = setting.missing[at];
  const cell = setting.cells[index];
  const { outcome, result } = measureCell(setting.experiment, cell, (one) => simulateCell(setting, one));
  if (setting.recordsFolder !== undefined) {
    const writer = new RecordsWriter(recordsPart(setting.recordsFolder, index));
    await writer.write(result.id, outcome.records);
    await writer.close();
  }
  return { index, result, seconds: (performance.now() - startedMs) / 1000 };
}

/** The file of one cell's records. */
export function recordsPart(folder: string, index: number): string {
  return join(folder, `${String(index).padStart(5, "0")}.jsonl.gz`);
}
