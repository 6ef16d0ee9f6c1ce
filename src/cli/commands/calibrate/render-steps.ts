import { type ErrorSummary, summariseErrors } from "../../../sim/calibration/error-summary.ts";
import type { StepFit, StepPrediction } from "../../../sim/calibration/step-fit.ts";
import type { TimingConstants } from "../../../sim/timing/step-timer.ts";
import { tableLines } from "../../table.ts";
import type { Colours } from "../../terminal.ts";
import { signed, summaryCells } from "./render.ts";

interface StepGroup {
  readonly name: string;
  readonly fitted: ErrorSummary;
  readonly heldOut: ErrorSummary;
}

const TITLES = ["group", "fitted n", "median %", "p90 %", "bias %", "held-out n", "median %", "p90 %", "bias %"];

/** The errors of the formula on measured steps, by kind of step and model, for a person. */
export function stepFitLines(fit: StepFit, colours: Colours): string[] {
  const columns = TITLES.map((title, at) => ({ title, align: at === 0 ? ("left" as const) : ("right" as const) }));
  return [
    ...tableLines(
      columns,
      stepGroups(fit).map((group) => ({ cells: groupCells(group) })),
      colours,
    ),
    "",
    ...constantLines(fit),
  ];
}

/** The same to publish, with every step: these measurements are our own. */
export function stepFitMarkdown(fit: StepFit): string[] {
  return [
    ...stepGroupMarkdown(fit),
    "",
    "```",
    ...constantLines(fit),
    "```",
    "",
    row(["index", "step", "new", "pairs", "batch", "context", "measured ms", "predicted ms", "error %", "half"]),
    row(["--:", "---", "--:", "--:", "--:", "--:", "--:", "--:", "--:", "---"]),
    ...fit.predictions.map((prediction) => row(stepCells(prediction))),
  ];
}

/** The groups alone, to publish. */
export function stepGroupMarkdown(fit: StepFit): string[] {
  return [
    row(TITLES),
    row(["---", ...TITLES.slice(1).map(() => "--:")]),
    ...stepGroups(fit).map((group) => row(groupCells(group))),
  ];
}

function row(cells: readonly string[]): string {
  return `| ${cells.join(" | ")} |`;
}

/** The same as plain data. */
export function stepFitJson(fit: StepFit): unknown {
  return {
    constants: fit.constants,
    eager: fit.eager,
    groups: stepGroups(fit),
    rows: fit.predictions.map((prediction) => ({
      index: prediction.row.index,
      measuredMs: prediction.row.measuredMs,
      predictedMs: prediction.predictedMs,
      errorPct: prediction.errorPct,
      fitted: prediction.fitted,
    })),
  };
}

function stepGroups(fit: StepFit): StepGroup[] {
  const groups = new Map<string, StepPrediction[]>();
  for (const prediction of fit.predictions) {
    const { block, kind, model, weights } = prediction.row;
    const name = `${block} ${kind} ${model.name} ${weights}, ${model.layers} layers`;
    for (const key of [name, `all ${kind}`]) groups.set(key, [...(groups.get(key) ?? []), prediction]);
  }
  return [...groups]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, all]) => ({ name, fitted: half(all, true), heldOut: half(all, false) }));
}

function half(predictions: readonly StepPrediction[], fitted: boolean): ErrorSummary {
  return summariseErrors(predictions.filter((one) => one.fitted === fitted).map((one) => one.errorPct));
}

function groupCells(group: StepGroup): string[] {
  return [group.name, ...summaryCells(group.fitted), ...summaryCells(group.heldOut)];
}

function stepCells(prediction: StepPrediction): string[] {
  const step = prediction.row;
  return [
    String(step.index),
    `${step.block} ${step.kind} ${step.model.name} ${step.model.layers} layers`,
    String(step.step.prefillTokens),
    String(step.step.prefillPairs),
    String(step.step.decodeSequences),
    String(step.step.contextTokens),
    step.measuredMs.toFixed(3),
    prediction.predictedMs.toFixed(3),
    signed(prediction.errorPct),
    prediction.fitted ? "fitted" : "held out",
  ];
}

function constantLines(fit: StepFit): string[] {
  const lines: string[] = [];
  for (const [weights, constants] of Object.entries(fit.constants)) {
    const named = (Object.keys(constants) as (keyof TimingConstants)[]).filter((name) => fit.free.includes(name));
    lines.push(`${weights}: ${named.map((name) => `${name} ${Number(constants[name].toPrecision(3))}`).join(", ")}`);
  }
  for (const one of fit.eager) {
    lines.push(
      `eager ${one.model}: at least ${(one.layerNs / 1000).toFixed(0)} microseconds per layer, over ${one.n} steps`,
    );
  }
  return lines;
}
