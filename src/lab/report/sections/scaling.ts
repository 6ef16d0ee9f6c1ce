import { levelTitle, type ReportLevel } from "../cell.ts";
import type { ArmComparison, LevelComparison } from "../comparisons.ts";
import { type Crossover, crossoversIn, type Row, rowsOf } from "../crossover.ts";
import { type Block, list, type Section, table, text } from "../document.ts";
import { ms, number, percent, signed, signedPercent } from "../format.ts";
import type { ReportModel } from "../model.ts";
import { levelColumn } from "./levels.ts";

/** The curve over loads and fleets, where it changes sides, and what the records say of the cause. */
export function scalingSection(model: ReportModel): Section {
  const blocks: Block[] = model.comparisons.flatMap((comparison) => comparisonBlocks(model, comparison));
  if (blocks.length === 0) blocks.push(text("A curve needs two arms at two or more loads, or on two or more fleets."));
  return { id: "scaling", title: "Scaling and crossover", blocks };
}

function comparisonBlocks(model: ReportModel, comparison: ArmComparison): Block[] {
  return rowsOf(comparison.levels).flatMap((row) => {
    const { arm, baseline } = comparison;
    const title = row.axis === "load" ? "rising load" : "more workers, the same load";
    const found = crossoversIn(row);
    return [
      table(
        `${arm} against ${baseline}, ${title}: over all offered requests`,
        [
          "<Level",
          `TTFT p50 ${baseline}`,
          `TTFT p50 ${arm}`,
          "Change",
          `TTFT p95 ${baseline}`,
          `TTFT p95 ${arm}`,
          "Change",
          "Completed",
          "<Verdict",
        ],
        row.levels.map(curveRow),
      ),
      found.length === 0
        ? text(noCrossover(row, comparison))
        : list(found.map((crossover) => describeCrossover(crossover, comparison))),
      ...causeBlocks(model, row, comparison),
    ];
  });
}

function curveRow({ level, differences, baseline, arm, verdict }: LevelComparison): string[] {
  const cells = ["ttftP50Ms", "ttftP95Ms"].flatMap((name) => {
    const found = differences.find(({ metric }) => metric.name === name);
    return found === undefined ? ["–", "–", "–"] : [ms(found.baseline), ms(found.arm), signedPercent(found.change)];
  });
  const completed = [baseline, arm].map(({ accounting }) =>
    percent(accounting.offered === 0 ? undefined : accounting.completed / accounting.offered),
  );
  return [levelTitle(level), ...cells, completed.join(" / "), verdict.kind.replaceAll("-", " ")];
}

function noCrossover({ levels }: Row, { arm, baseline }: ArmComparison): string {
  const change = (of: LevelComparison): string => {
    const found = of.differences.find(({ metric }) => metric.name === "ttftP95Ms");
    return signedPercent(found?.change);
  };
  const [first, last] = [levels[0], levels[levels.length - 1]];
  return (
    `**No crossover in the tested range:** ${arm} and ${baseline} do not change sides in TTFT p50 or p95 from ${levelTitle(first.level)} ` +
    `(p95 ${change(first)}) to ${levelTitle(last.level)} (p95 ${change(last)}).`
  );
}

function describeCrossover({ metric, from, to, turns, isShown }: Crossover, { arm }: ArmComparison): string {
  const name = metric === "ttftP50Ms" ? "TTFT p50" : "TTFT p95";
  const sure = isShown ? "both sides are beyond noise" : "at least one side is within noise";
  return `**Crossover in ${name} between ${levelTitle(from)} and ${levelTitle(to)}:** ${arm}'s ${turns} (${sure}).`;
}

/** What the arm saves and what it pays, stage by stage, from the records: the crossover is where the sum changes sign. */
function causeBlocks(model: ReportModel, { levels }: Row, { arm, baseline }: ArmComparison): Block[] {
  const column = levelColumn(model);
  const rows = levels.flatMap((level) => causeRow(model, level, (one) => column.of(one)));
  if (rows.length === 0) {
    return [
      text(
        "The cause needs a record of each request with the moment it reached its worker, which the sources do not have.",
      ),
    ];
  }
  return [
    table(
      `Cause, from the records: mean TTFT of ${arm} − ${baseline} by stage (ms), and what crowded the workers`,
      [
        column.title,
        "Client and router",
        "Own prefill",
        "Waiting on the worker",
        "Sum",
        "Slowest twentieth: prefill",
        "Slowest twentieth: waiting",
        "Spread p95",
        "Wait spike (ms)",
        "Placed beyond the batch",
      ],
      rows,
    ),
    text(causeText(model, levels, arm, baseline)),
  ];
}

function causeRow(
  model: ReportModel,
  { level, baseline, arm }: LevelComparison,
  levelOf: (level: ReportLevel) => string,
): string[][] {
  const [x, y] = [model.anatomies.get(baseline), model.anatomies.get(arm)];
  if (x === undefined || y === undefined) return [];
  const outside = y.all.clientMs + y.all.routerMs - x.all.clientMs - x.all.routerMs;
  const prefill = y.all.prefillMs - x.all.prefillMs;
  const waiting = y.all.waitingMs - x.all.waitingMs;
  const [p, q] = [model.balances.get(baseline), model.balances.get(arm)];
  const beside = (
    of: (balance: typeof p) => number | undefined,
    shown: (value: number | undefined) => string,
  ): string => `${shown(of(p))} → ${shown(of(q))}`;
  return [
    [
      levelOf(level),
      signed(outside, 1),
      signed(prefill, 1),
      signed(waiting, 1),
      signed(outside + prefill + waiting, 1),
      signed(y.slowest.prefillMs - x.slowest.prefillMs, 0),
      signed(y.slowest.waitingMs - x.slowest.waitingMs, 0),
      `${number(baseline.spread?.p95, 0)} → ${number(arm.spread?.p95, 0)}`,
      beside(
        (balance) => balance?.waitSpikeMs,
        (value) => number(value, 0),
      ),
      beside(
        (balance) => balance?.crowded?.share,
        (value) => percent(value),
      ),
    ],
  ];
}

/** The stage that moved most between the first level and the last, in words. */
function causeText(model: ReportModel, levels: readonly LevelComparison[], arm: string, baseline: string): string {
  const at = (level: LevelComparison): { prefill: number; waiting: number } | undefined => {
    const [x, y] = [model.anatomies.get(level.baseline), model.anatomies.get(level.arm)];
    if (x === undefined || y === undefined) return undefined;
    return { prefill: y.all.prefillMs - x.all.prefillMs, waiting: y.all.waitingMs - x.all.waitingMs };
  };
  const [first, last] = [at(levels[0]), at(levels[levels.length - 1])];
  if (first === undefined || last === undefined) return "";
  const [from, to] = [levelTitle(levels[0].level), levelTitle(levels[levels.length - 1].level)];
  const stage =
    Math.abs(last.waiting - first.waiting) >= Math.abs(last.prefill - first.prefill) ? "waiting" : "prefill";
  const name = stage === "waiting" ? "waiting on the worker" : "computing the prompt itself";
  const sense = last[stage] < first[stage] ? "in favour of" : "against";
  return (
    `From ${from} to ${to}, what moved the comparison is ${name}: ${signed(first[stage], 0)} ms there, ${signed(last[stage], 0)} ms here (${arm} − ${baseline}), ` +
    `${sense} ${arm}. Its own prefill makes ${signed(first.prefill, 0)} ms and ${signed(last.prefill, 0)} ms of the difference.`
  );
}
