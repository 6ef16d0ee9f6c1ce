/**
 * Writes the tables of docs/accuracy.md: node --import tsx scripts/write-accuracy.mjs. Everything between a
 * `<!-- table: NAME -->` line and the next `<!-- end -->` is replaced. Serving measurements are read from the folder in
 * WARMPATH_DATA (data/ by default), our own from calibration/; measured values of others are never written.
 */
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { calibrationMarkdown } from "../src/cli/commands/calibrate/render.ts";
import { stepFitMarkdown, stepGroupMarkdown } from "../src/cli/commands/calibrate/render-steps.ts";
import { errorGroups, isGoalRow, summariseErrors } from "../src/sim/calibration/error-summary.ts";
import { predictRow } from "../src/sim/calibration/prediction.ts";
import { parseSiliconRows } from "../src/sim/calibration/silicon-row.ts";
import { FIT_BOUNDS } from "../src/sim/calibration/silicon-fit.ts";
import { fitSteps } from "../src/sim/calibration/step-fit.ts";
import { parseStepRows } from "../src/sim/calibration/step-row.ts";
import { CONSTANTS } from "../src/sim/timing/constants.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const document = join(root, "docs", "accuracy.md");
const measured = readFileSync(join(root, "calibration", "h200-2026-11-15", "measured_rows.csv"), "utf8");
const silicon = readFileSync(
  join(resolve(root, process.env.WARMPATH_DATA || "data"), "silicon", "silicon_rows.csv"),
  "utf8",
);

const row = (cells) => `| ${cells.join(" | ")} |`;
const table = (titles, rows) => [row(titles), row(titles.map((_, at) => (at === 0 ? "---" : "--:"))), ...rows.map(row)];
const signed = (value) => `${value >= 0 ? "+" : ""}${value.toFixed(1)}`;

const predictions = parseSiliconRows(silicon, "silicon_rows.csv").map((one) => predictRow(one));
const siliconMarkdown = calibrationMarkdown({
  file: "silicon_rows.csv",
  predictions,
  groups: errorGroups(predictions),
});
const split = siliconMarkdown.indexOf("");
const stepRows = parseStepRows(measured, "measured_rows.csv");
const steps = stepFitMarkdown(fitSteps(stepRows, "h200"));
const everyStep = steps.lastIndexOf("");
// The hardest form: the formula has seen no mixed step and, in BF16, only one of two models.
const unseen = fitSteps(stepRows, "h200", (one) => one.kind !== "mixed" && one.model.name !== "qwen3-8b");

function worstRows() {
  const worst = predictions.filter((one) => one.covered && Math.abs(one.tpotErrorPct) > 15);
  worst.sort((a, b) => Math.abs(b.tpotErrorPct) - Math.abs(a.tpotErrorPct));
  return table(
    ["row", "constants", "TPOT error %", "in the goal group"],
    worst.map((one) => [one.row.id, one.cell, signed(one.tpotErrorPct), isGoalRow(one) ? "yes" : "no"]),
  );
}

function constants() {
  const names = Object.keys(CONSTANTS[0].constants);
  const marked = (cell, name) => {
    const bound = FIT_BOUNDS.find((one) => one.name === name);
    const value = cell.constants[name];
    const fitted = bound !== undefined && cell.sources[name].startsWith("fitted");
    // A factor of 1, no launch floor and no host time mean that an effect is absent, not that it is cut off.
    const absent = value === 0 || (name === "linearFactorTo32" && value === 1);
    return fitted && !absent && (value <= bound.low || value >= bound.high) ? `${value} \\*` : value;
  };
  return table(
    ["constant", ...CONSTANTS.map((cell) => cell.name)],
    names.map((name) => [name, ...CONSTANTS.map((cell) => marked(cell, name))]),
  );
}

function kernelRows(block) {
  const [header, ...lines] = measured
    .trim()
    .split(/\r?\n/)
    .map((line) => line.split(","));
  return lines
    .map((cells) => Object.fromEntries(header.map((name, at) => [name, cells[at]])))
    .filter((one) => one.block === block);
}

function ceilings() {
  const lines = [];
  for (const one of kernelRows("A")) {
    const ms = Number(one.median_ms);
    if (one.kind === "copy")
      lines.push(["device copy, 4 GiB", `${(one.bytes / ms / 1e9).toFixed(2)} TB/s read and written`]);
    if (one.kind === "matmul")
      lines.push([`${one.weights} 8192³ product`, `${((2 * 8192 ** 3) / ms / 1e9).toFixed(0)} TFLOP/s`]);
    if (one.kind.includes("host"))
      lines.push([`${one.kind}, ${one.bytes / 1024} kB, ${one.mode}`, `${(one.bytes / ms / 1e6).toFixed(1)} GB/s`]);
    if (one.kind === "launch") lines.push([`kernel launch, ${one.mode}`, `${(ms * 1000).toFixed(2)} µs`]);
  }
  return table(["what", "measured"], lines);
}

/** The law t² = compute² + weights² with two constants per shape, fitted on even rows, judged on odd ones. */
function products() {
  const shapes = new Map();
  for (const one of kernelRows("B")) {
    const key = `${one.model} ${one.weights} ${one.gemm_n} x ${one.gemm_k}`;
    shapes.set(key, [...(shapes.get(key) ?? []), one]);
  }
  const errors = [];
  const lines = [...shapes].map(([key, points]) => {
    const [{ weights, gemm_n: n, gemm_k: k }] = points;
    const predict = (one, compute, bandwidth) =>
      Math.hypot(
        (2 * n * k * one.gemm_m) / (compute * (weights === "fp8" ? 1979e9 : 989e9)),
        (n * k * (weights === "fp8" ? 1 : 2)) / (bandwidth * 4.8e9),
      );
    let best = { loss: Infinity, compute: 0, bandwidth: 0 };
    for (let compute = 0.3; compute < 0.9; compute += 0.01) {
      for (let bandwidth = 0.3; bandwidth < 1; bandwidth += 0.01) {
        let loss = 0;
        for (const one of points)
          if (one.index % 2 === 0) loss += Math.abs(Math.log(predict(one, compute, bandwidth) / one.median_ms));
        if (loss < best.loss) best = { loss, compute, bandwidth };
      }
    }
    const own = points
      .filter((one) => one.index % 2 === 1)
      .map((one) => (predict(one, best.compute, best.bandwidth) / one.median_ms - 1) * 100);
    errors.push(...own);
    const { medianPct, p90Pct, biasPct } = summariseErrors(own);
    return [
      key,
      best.compute.toFixed(2),
      best.bandwidth.toFixed(2),
      own.length,
      medianPct.toFixed(1),
      p90Pct.toFixed(1),
      signed(biasPct),
    ];
  });
  const all = summariseErrors(errors);
  lines.push(["all shapes", "", "", all.n, all.medianPct.toFixed(1), all.p90Pct.toFixed(1), signed(all.biasPct)]);
  return table(["product (n x k)", "compute", "bandwidth", "held-out n", "median %", "p90 %", "bias %"], lines);
}

function summary() {
  const of = (name) => errorGroups(predictions).find((group) => group.name === name);
  const goal = "goal: H100/H200 TP1-4 vLLM and TensorRT-LLM";
  const client = "goal, documented client";
  const number = (one, key) => `${one[key].toFixed(1)} % (n ${one.n})`;
  const held = (kind) => {
    const errors = fitSteps(stepRows, "h200").predictions.filter((one) => one.row.kind === kind && !one.fitted);
    const { n, medianPct, p90Pct, biasPct } = summariseErrors(errors.map((one) => one.errorPct));
    return `${medianPct.toFixed(1)} / ${p90Pct.toFixed(1)} / ${signed(biasPct)} % (n ${n})`;
  };
  const lines = [
    [
      "TPOT on H100/H200, TP1–4, vLLM and TensorRT-LLM, median",
      "≤ 6 %",
      number(of(goal).tpot, "medianPct"),
      number(of(`${goal}, held-out half`).tpot, "medianPct"),
    ],
    ["the same, p90", "≤ 15 %", number(of(goal).tpot, "p90Pct"), number(of(`${goal}, held-out half`).tpot, "p90Pct")],
    [
      "TTFT of those, unsaturated, documented client, median",
      "≤ 15 %",
      number(of(client).ttft, "medianPct"),
      number(of(`${client}, held-out half`).ttft, "medianPct"),
    ],
  ];
  for (const kind of ["decode", "prefill", "mixed"]) {
    lines.push([
      `the formula on ${kind} steps measured on an H200, median / p90 / bias`,
      "≤ 5 / 10 / ±3 %",
      "",
      held(kind),
    ]);
  }
  return table(["question", "goal", "all rows", "held-out half"], lines);
}

const tables = {
  summary: summary(),
  "silicon groups": siliconMarkdown.slice(0, split),
  "silicon rows": siliconMarkdown.slice(split + 1),
  "worst rows": worstRows(),
  constants: constants(),
  "step groups": steps.slice(0, everyStep),
  "every step": steps.slice(everyStep + 1),
  "unseen steps": stepGroupMarkdown(unseen),
  ceilings: ceilings(),
  products: products(),
};

let text = readFileSync(document, "utf8");
for (const [name, lines] of Object.entries(tables)) {
  const start = `<!-- table: ${name} -->\n`;
  const from = text.indexOf(start);
  const to = text.indexOf("<!-- end -->", from);
  if (from < 0 || to < 0) throw new Error(`docs/accuracy.md has no place for the table "${name}"`);
  text = `${text.slice(0, from + start.length)}\n${lines.join("\n")}\n\n${text.slice(to)}`;
}
writeFileSync(document, text);
execFileSync(join(root, "node_modules", ".bin", "oxfmt"), [document]);
process.stdout.write(`docs/accuracy.md: ${predictions.length} rows, ${stepRows.length} steps\n`);
