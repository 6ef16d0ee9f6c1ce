import type { LatencyName } from "../cell.ts";
import type { ArmComparison, LevelComparison } from "../comparisons.ts";
import { type Block, type Section, table, text } from "../document.ts";
import { NOTHING, number, percent, signed, signedPercent } from "../format.ts";
import type { ArmAtLevel } from "../groups.ts";
import type { ReportModel } from "../model.ts";
import { valueOf } from "../reading.ts";
import { throughputOf } from "../throughput-kind.ts";
import { withheld } from "../verdict.ts";
import { type LevelColumn, levelColumn, levelList } from "./levels.ts";

/** The results in ten lines, as study 2 sums itself up; losses stand before gains. */
export function summarySection(model: ReportModel): Section {
  const column = levelColumn(model);
  const blocks: Block[] = model.comparisons.map((comparison) =>
    table(`${comparison.arm} against ${comparison.baseline}`, ["<Metric", "<Value"], linesOf(comparison, column)),
  );
  blocks.push(
    model.comparisons.length === 0
      ? text("A summary of improvements needs two arms.")
      : text(
          "Improvements are of completed requests, over all requests of a level together (where a source has no record of each request, the mean over runs); an average is over levels, none weighing more. " +
            "Levels at which the arms cannot be compared, or an arm completed fewer requests and was quicker with the rest, are left out.",
        ),
  );
  return { id: "summary", title: "Results summary", blocks };
}

interface AtLevel {
  readonly at: string;
  readonly value: number;
}

function linesOf({ levels, arm, baseline }: ArmComparison, column: LevelColumn): string[][] {
  const compared = levels.filter(({ verdict }) => withheld(verdict) === undefined);
  const gains = (of: (group: ArmAtLevel) => number | undefined, sign: 1 | -1): AtLevel[] =>
    compared.flatMap((level) => {
      const [x, y] = [of(level.baseline), of(level.arm)];
      return x === undefined || y === undefined || x === 0
        ? []
        : [{ at: column.of(level.level), value: (sign * (y - x)) / x }];
    });
  const ttft = (name: "p50" | "p95"): AtLevel[] => gains((group) => statisticOf(group, "ttftMs", name), -1);
  const itl = gains((group) => statisticOf(group, "tpotMs", "p50"), -1);
  const throughput = throughputOf(levels.flatMap((level) => [level.baseline, level.arm]));
  const tokensPerSecond = (group: ArmAtLevel): number | undefined => throughput(group).tokens;
  const tokens = gains(tokensPerSecond, 1);
  const reasons = leftOut(levels, column);
  // Where no level is left, a gain is not a number that could not be had but one that would mislead.
  const said = (gain: string): string =>
    compared.length > 0 || reasons.length === 0 ? gain : `${NOTHING}, ${reasons.map(({ why }) => why).join(", ")}`;
  return [
    ...(compared.length === 0 || reasons.length === 0
      ? []
      : [["Left out", reasons.map(({ why, at }) => `${column.title.toLowerCase()} ${at}: ${why}`).join("; ")]]),
    ["Worst TTFT p50 change", said(extreme(ttft("p50"), "least", column))],
    ["Worst TTFT p95 change", said(extreme(ttft("p95"), "least", column))],
    [`Average TTFT p50 improvement${spanOf(compared, column)}`, said(average(ttft("p50")))],
    ["Peak TTFT p50 improvement", said(extreme(ttft("p50"), "most", column))],
    [`Average TTFT p95 improvement${spanOf(compared, column)}`, said(average(ttft("p95")))],
    ["Peak TTFT p95 improvement", said(extreme(ttft("p95"), "most", column))],
    [`Cache hit rate (${arm})`, hitRange(levels.map((level) => level.arm))],
    [`Cache hit rate (${baseline})`, hitRange(levels.map((level) => level.baseline))],
    [`Throughput advantage (${arm})`, said(range(tokens))],
    [`ITL advantage (${arm}, p50 per request)`, said(range(itl))],
    [`Peak throughput (${arm})`, peak(levels, (level) => tokensPerSecond(level.arm), column)],
    [`Peak throughput (${baseline})`, peak(levels, (level) => tokensPerSecond(level.baseline), column)],
  ];
}

/** Levels of which no gain is told, by the reason. */
function leftOut(levels: readonly LevelComparison[], column: LevelColumn): { why: string; at: string }[] {
  const reasons = new Set(levels.flatMap(({ verdict }) => withheld(verdict) ?? []));
  return [...reasons].map((why) => ({
    why,
    at: levelList(
      levels.filter(({ verdict }) => withheld(verdict) === why).map(({ level }) => level),
      column,
    ),
  }));
}

/** Over all requests together; where only runs are known, the mean over runs. */
function statisticOf(group: ArmAtLevel, latency: LatencyName, statistic: "p50" | "p95"): number | undefined {
  return valueOf(group.latencies[latency].completed[statistic]) ?? valueOf(group.runMeans[latency][statistic]);
}

function spanOf(levels: readonly LevelComparison[], column: LevelColumn): string {
  if (levels.length < 2) return "";
  return ` (${column.of(levels[0].level)}–${column.of(levels[levels.length - 1].level)})`;
}

function average(values: readonly AtLevel[]): string {
  return values.length === 0
    ? NOTHING
    : signedPercent(values.reduce((sum, { value }) => sum + value, 0) / values.length);
}

function extreme(values: readonly AtLevel[], which: "most" | "least", column: LevelColumn): string {
  const sorted = values.toSorted((a, b) => a.value - b.value);
  const found = which === "most" ? sorted.at(-1) : sorted[0];
  return found === undefined ? NOTHING : `${signedPercent(found.value)} at ${column.title.toLowerCase()} ${found.at}`;
}

function range(values: readonly AtLevel[]): string {
  if (values.length === 0) return NOTHING;
  const numbers = values.map(({ value }) => 100 * value);
  if (numbers.length === 1) return `${signed(numbers[0], 1)} %`;
  const mean = numbers.reduce((sum, value) => sum + value, 0) / numbers.length;
  return `${signed(Math.min(...numbers), 1)} % to ${signed(Math.max(...numbers), 1)} %, average ${signed(mean, 1)} %`;
}

function hitRange(groups: readonly ArmAtLevel[]): string {
  const shares = groups.flatMap(({ cache }) => cache.observed ?? []);
  if (shares.length === 0) return "unavailable: no source names cached tokens";
  const mean = shares.reduce((sum, share) => sum + share, 0) / shares.length;
  return `${percent(Math.min(...shares))}–${percent(Math.max(...shares))}, average ${percent(mean)}`;
}

function peak(
  levels: readonly LevelComparison[],
  of: (level: LevelComparison) => number | undefined,
  column: LevelColumn,
): string {
  const found = levels
    .flatMap((level) => {
      const value = of(level);
      return value === undefined ? [] : [{ at: column.of(level.level), value }];
    })
    .toSorted((a, b) => b.value - a.value)[0];
  return found === undefined
    ? NOTHING
    : `${number(found.value, 1)} tokens/s at ${column.title.toLowerCase()} ${found.at}`;
}
