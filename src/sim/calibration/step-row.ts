import { WarmpathError } from "../../core/errors.ts";
import { findModel, type ModelShape, type NumberFormat } from "../timing/models.ts";
import type { StepShape } from "../timing/step-timer.ts";
import { splitCsvLine } from "./silicon-row.ts";

/** One whole decoder step measured on a GPU by calibration/h200_run.py. */
export interface StepRow {
  readonly index: number;
  readonly block: string;
  readonly kind: string;
  /** With as many layers as were measured, which may be fewer than the model has. */
  readonly model: ModelShape;
  readonly weights: NumberFormat;
  readonly kv: NumberFormat;
  readonly mode: "graph" | "eager";
  readonly step: StepShape;
  readonly measuredMs: number;
}

const COLUMNS = [
  "index",
  "block",
  "kind",
  "model",
  "weights",
  "kv",
  "mode",
  "layers",
  "prefill_new",
  "prefill_cached",
  "decode_batch",
  "decode_context_sum",
  "median_ms",
] as const;

/** Whether a file is one of measured steps rather than of serving measurements. */
export function isStepFile(text: string): boolean {
  return text.slice(0, text.indexOf("\n")).includes("decode_context_sum");
}

/** Reads the rows of whole steps (blocks E, F and G) from a file of measurements; kernel rows are passed over. */
export function parseStepRows(text: string, fileName: string): StepRow[] {
  const lines = text.split(/\r?\n/);
  const fail = (line: number, reason: string): never => {
    throw new WarmpathError("WP_INVALID_INPUT", `${fileName} line ${line}: ${reason}`);
  };
  const header = splitCsvLine(lines[0]) ?? fail(1, "a quote is not closed");
  for (const column of COLUMNS) if (!header.includes(column)) fail(1, `the column ${column} is missing`);
  const rows: StepRow[] = [];
  for (let number = 2; number <= lines.length; number++) {
    const line = lines[number - 1];
    if (line === "") continue;
    const cells = splitCsvLine(line) ?? fail(number, "a quote is not closed");
    if (cells.length !== header.length) fail(number, `has ${cells.length} fields, the header has ${header.length}`);
    const read = (column: (typeof COLUMNS)[number]): string => cells[header.indexOf(column)];
    const count = (column: (typeof COLUMNS)[number]): number => {
      const value = Number(read(column));
      if (read(column) === "" || !(value >= 0)) fail(number, `${column} must be a number, got "${read(column)}"`);
      return value;
    };
    if (!"EFG".includes(read("block"))) continue;
    const model = findModel(read("model")) ?? fail(number, `the model ${read("model")} is not known`);
    const created = count("prefill_new");
    const batch = count("decode_batch");
    rows.push({
      index: count("index"),
      block: read("block"),
      kind: read("kind"),
      model: { ...model, layers: count("layers") },
      weights: read("weights") === "fp8" ? "fp8" : "bf16",
      kv: read("kv") === "fp8" ? "fp8" : "bf16",
      mode: read("mode") === "eager" ? "eager" : "graph",
      step: {
        prefillTokens: created,
        prefillPairs: created * (count("prefill_cached") + created / 2),
        prefillSequences: created > 0 ? 1 : 0,
        decodeSequences: batch,
        decodeTokens: batch,
        contextTokens: count("decode_context_sum"),
        sampledRows: batch + (created > 0 ? 1 : 0),
      },
      measuredMs: count("median_ms"),
    });
  }
  if (rows.length === 0) fail(2, "there are no rows of whole steps");
  return rows;
}
