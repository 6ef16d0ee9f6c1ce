import type { PredictedRow, RowPrediction } from "./prediction.ts";
import { isInSubset, type RowSubset } from "./silicon-fit.ts";

/** How far predictions of one quantity are off; percents of the measured value. */
export interface ErrorSummary {
  readonly n: number;
  readonly medianPct: number;
  readonly p90Pct: number;
  /** Mean signed error: what does not average out. */
  readonly biasPct: number;
}

/** The errors of one group of rows: TPOT of all, TTFT of those that are not saturated. */
export interface ErrorGroup {
  readonly name: string;
  readonly tpot: ErrorSummary;
  readonly ttft: ErrorSummary;
}

/** Summarises signed errors; an empty list has no percentiles. */
export function summariseErrors(errorsPct: readonly number[]): ErrorSummary {
  const n = errorsPct.length;
  if (n === 0) return { n, medianPct: Number.NaN, p90Pct: Number.NaN, biasPct: Number.NaN };
  const sizes = errorsPct.map(Math.abs).sort((a, b) => a - b);
  const rank = (share: number): number => sizes[Math.max(0, Math.ceil(share * n) - 1)];
  const medianPct = n % 2 === 1 ? rank(0.5) : (sizes[n / 2 - 1] + sizes[n / 2]) / 2;
  return { n, medianPct, p90Pct: rank(0.9), biasPct: errorsPct.reduce((sum, error) => sum + error, 0) / n };
}

/** Groups predictions by constants, model, card and tensor parallel, after the groups that the project is judged by. */
export function errorGroups(predictions: readonly RowPrediction[]): ErrorGroup[] {
  const covered = predictions.filter((prediction): prediction is PredictedRow => prediction.covered);
  const named = new Map<string, PredictedRow[]>();
  const add = (name: string, prediction: PredictedRow): void => {
    const group = named.get(name);
    if (group === undefined) named.set(name, [prediction]);
    else group.push(prediction);
  };
  const goal = covered.filter(isGoalRow);
  const halves: readonly (readonly [string, RowSubset])[] = [
    ["", "all"],
    [", calibration half", "calibration"],
    [", held-out half", "held-out"],
  ];
  for (const [suffix, subset] of halves) {
    const inHalf = (prediction: PredictedRow): boolean => isInSubset(prediction.row.id, subset);
    for (const prediction of goal.filter(inHalf))
      add(`goal: H100/H200 TP1-4 vLLM and TensorRT-LLM${suffix}`, prediction);
    for (const prediction of goal.filter(inHalf).filter((one) => one.documentedClient)) {
      add(`goal, documented client${suffix}`, prediction);
    }
    for (const prediction of covered.filter(inHalf)) {
      add(`all covered${suffix}`, prediction);
      if (prediction.documentedClient) add(`all with a documented client${suffix}`, prediction);
    }
  }
  const cells = new Map<string, PredictedRow[]>();
  for (const prediction of covered) {
    const { row } = prediction;
    const name = `${prediction.cell}, ${prediction.model} ${row.system} TP${row.tensorParallel}`;
    cells.set(name, [...(cells.get(name) ?? []), prediction]);
  }
  const ordered = [...cells].sort(([a], [b]) => (a < b ? -1 : 1));
  return [...named, ...ordered].map(([name, rows]) => ({
    name,
    tpot: summariseErrors(rows.map((row) => row.tpotErrorPct)),
    ttft: summariseErrors(rows.filter((row) => !row.ttftSaturated).map((row) => row.ttftErrorPct)),
  }));
}

/** The rows that the accuracy goals speak of. */
export function isGoalRow(prediction: PredictedRow): boolean {
  const { row } = prediction;
  const card = row.system.toLowerCase();
  return (
    (card.startsWith("h100") || card.startsWith("h200")) &&
    row.tensorParallel <= 4 &&
    (row.backend === "vllm" || row.backend === "trtllm")
  );
}
