import { levelTitle } from "../../../lab/report/cell.ts";
import type { LevelComparison } from "../../../lab/report/comparisons.ts";
import { ms, NOTHING, number, percent, signed } from "../../../lab/report/format.ts";
import type { ReportModel } from "../../../lab/report/model.ts";
import type { Reading } from "../../../lab/report/reading.ts";
import { type JudgedDifference, VERDICT_WORDS } from "../../../lab/report/verdict.ts";
import { type TableColumn, tableLines } from "../../table.ts";
import type { Colours } from "../../terminal.ts";
import type { ComparedFolders } from "./verdicts.ts";

/** The comparison for people: per level the accounts, every metric side by side, and the verdict. */
export function comparisonLines(
  { comparisons, alone, missing, lost, verdict }: ComparedFolders,
  colours: Colours,
): string[] {
  const lines = comparisons.flatMap((comparison) =>
    comparison.levels.flatMap((level) => [
      colours.bold(`${comparison.arm} against ${comparison.baseline}: ${levelTitle(level.level)}`),
      ...levelLines(level, colours),
      `verdict: ${VERDICT_WORDS[level.verdict.kind]}`,
      ...level.verdict.reasons.map((reason) => `  ${reason}`),
      "",
    ]),
  );
  for (const name of alone) lines.push(`${name}: has no counterpart in the other folder`);
  for (const { arm, level } of missing) lines.push(`${arm}: has no results at ${levelTitle(level)}`);
  lines.push(colours.bold(`verdict: ${VERDICT_WORDS[verdict]}`));
  if (lost.length > 0) lines.push(`  the baseline has what the other folder has not: ${lost.join("; ")}`);
  return lines;
}

function levelLines({ baseline, arm, differences }: LevelComparison, colours: Colours): string[] {
  const columns: TableColumn[] = [
    { title: "over offered", align: "left" },
    { title: baseline.arm, align: "right" },
    { title: arm.arm, align: "right" },
    { title: "change", align: "right" },
    { title: "95 % interval", align: "right" },
    { title: "", align: "left" },
  ];
  const count = (of: typeof arm): string => `${of.accounting.completed} of ${of.accounting.offered}`;
  const rows = [
    { cells: ["requests completed", count(baseline), count(arm), "", "", ""] },
    {
      cells: [
        "TTFT mean, completed ms",
        ms(baseline.latencies.ttftMs.completed.mean),
        ms(arm.latencies.ttftMs.completed.mean),
        "",
        "",
        "",
      ],
    },
    // What got worse stands before what got better.
    ...differences
      .toSorted((a, b) => ORDER[a.outcome] - ORDER[b.outcome])
      .map((difference) => ({
        cells: [
          difference.metric.title + (difference.metric.kind === "latency" ? " ms" : ""),
          shown(difference, difference.baseline),
          shown(difference, difference.arm),
          changeOf(difference),
          intervalOf(difference),
          difference.outcome.replaceAll("-", " "),
        ],
      })),
  ];
  return tableLines(columns, rows, colours);
}

const ORDER = { worse: 0, better: 1, "no-difference-shown": 2 } as const;

function shown({ metric }: JudgedDifference, reading: Reading): string {
  if (metric.kind === "share") return reading.state === "ok" ? percent(reading.value) : NOTHING;
  return metric.kind === "rate" && reading.state === "ok" ? number(reading.value, 1) : ms(reading);
}

function changeOf({ metric, change }: JudgedDifference): string {
  if (change === undefined || !Number.isFinite(change)) return NOTHING;
  return `${signed(100 * change, 1)} ${metric.kind === "share" ? "pp" : "%"}`;
}

function intervalOf({ interval, noise }: JudgedDifference): string {
  if (interval === undefined) return noise === "none" ? "noise unknown" : NOTHING;
  return `${signed(100 * interval.low, 1)} to ${signed(100 * interval.high, 1)}`;
}

/** The same for machines. */
export function comparisonJson(
  { problems, sources }: ReportModel,
  { comparisons, alone, missing, lost, verdict }: ComparedFolders,
): object {
  return {
    verdict,
    folders: sources.map(({ folder }) => folder),
    problems,
    alone,
    missing,
    lost,
    arms: comparisons.map(({ arm, baseline, levels, variables }) => ({
      arm,
      baseline,
      variables,
      levels: levels.map(({ level, verdict: at, differences, obstacles, baseline: x, arm: y }) => ({
        level,
        verdict: at.kind,
        reasons: at.reasons,
        obstacles,
        accounting: { baseline: x.accounting, arm: y.accounting },
        metrics: differences.map(
          ({ metric, baseline: before, arm: after, change, interval, chance, noise, outcome }) => ({
            metric: metric.name,
            baseline: before,
            arm: after,
            change: change === undefined || !Number.isFinite(change) ? null : change,
            interval: interval ?? null,
            chance: chance ?? null,
            noise,
            outcome,
          }),
        ),
      })),
    })),
  };
}
