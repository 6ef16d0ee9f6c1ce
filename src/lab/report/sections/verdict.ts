import type { ArmComparison, LevelComparison } from "../comparisons.ts";
import { type Block, list, type Section, table, text } from "../document.ts";
import { ms, NOTHING, number, percent, signed } from "../format.ts";
import type { ArmAtLevel } from "../groups.ts";
import { groupAt, type ReportModel } from "../model.ts";
import type { PairedView } from "../pairs.ts";
import { throughputOf } from "../throughput-kind.ts";
import { type JudgedDifference, VERDICT_WORDS, type VerdictKind } from "../verdict.ts";
import { levelTitle } from "../cell.ts";
import { type LevelColumn, levelColumn, levelList } from "./levels.ts";

/** The gravest first. */
const GRAVITY: readonly VerdictKind[] = ["traded", "worse", "mixed", "not-comparable", "no-difference-shown", "better"];

/** The answer, before anything else: per arm in words, then three numbers on offered requests per arm and level. */
export function verdictSection(model: ReportModel): Section {
  const blocks: Block[] = model.comparisons.map((comparison) => text(headline(comparison, levelColumn(model))));
  if (model.comparisons.length === 0) {
    const names = model.arms.map(({ name }) => name).join(", ");
    blocks.push(text(`There is one arm, ${names}: nothing to compare it with.`));
  }
  const reasons = model.comparisons.flatMap(reasonsOf);
  if (reasons.length > 0) blocks.push(list(reasons));
  blocks.push(
    numbers(model),
    ...model.comparisons.flatMap((comparison) => differencesTable(comparison, levelColumn(model))),
  );
  blocks.push(
    text(
      "Verdicts rest on all offered requests: a request that did not complete counts as infinitely slow. A difference is called shown if it survives the " +
        "noise between parts and runs (5 % of the shown ones may be chance), and is at least 2 %, or half a percentage point of a share.",
    ),
  );
  return { id: "verdict", title: "Verdict", blocks };
}

/** One arm in one sentence: what holds where, the gravest first. */
export function headline(comparison: ArmComparison, column: LevelColumn): string {
  const { arm, baseline, levels, missing } = comparison;
  const name = `**${arm} against ${baseline}:`;
  if (levels.length === 0) return `${name} not comparable.** They have no level in common.`;
  const lone = levels.length === 1 ? levels[0] : undefined;
  const said =
    lone !== undefined
      ? VERDICT_WORDS[lone.verdict.kind]
      : GRAVITY.flatMap((kind) => {
          const at = levels.filter(({ verdict }) => verdict.kind === kind).map(({ level }) => level);
          return at.length === 0 ? [] : [`${VERDICT_WORDS[kind]} at ${levelList(at, column)}`];
        }).join("; ");
  const note = missing.length === 0 ? "" : ` ${missing.length} levels are missing in one of the arms.`;
  const same = comparison.isSameArm ? " Both arms have the same settings: this is an A/A comparison." : "";
  return `${name} ${said}.**${note}${same}`;
}

/** Why, level by level, where something stands against an arm; what speaks for it is in the table. */
function reasonsOf(comparison: ArmComparison): string[] {
  const ordered = comparison.levels.toSorted(
    (a, b) => GRAVITY.indexOf(a.verdict.kind) - GRAVITY.indexOf(b.verdict.kind),
  );
  const isAlone = comparison.levels.length === 1;
  return [
    ...ordered
      .filter(({ verdict }) => isAlone || verdict.kind !== "better")
      .map(({ level, verdict }) => `${comparison.arm}, ${levelTitle(level)}: ${verdict.reasons.join("; ")}`),
    ...comparison.missing.map(({ arm, level }) => `${arm} has no results at ${levelTitle(level)}`),
  ];
}

/** Every judged metric, regressions in bold. */
function differencesTable({ arm, baseline, levels }: ArmComparison, column: LevelColumn): Block[] {
  if (levels.length === 0) return [];
  const titles = levels[0].differences.map(({ metric }) => metric.title);
  return [
    table(
      `Change of ${arm} against ${baseline} over all offered requests, with 95 % interval`,
      [column.title, ...titles],
      levels.map(({ level, differences }) => [column.of(level), ...differences.map(differenceText)]),
    ),
  ];
}

function differenceText({ metric, change, interval, outcome, arm, baseline }: JudgedDifference): string {
  const isShown = outcome !== "no-difference-shown";
  if (arm.state === "not-reached") {
    if (baseline.state === "not-reached") return "not reached by either";
    return isShown ? "**worse**: not reached" : "not reached, not shown";
  }
  if (baseline.state === "not-reached") {
    return isShown ? "better: the baseline's is not reached" : "the baseline's is not reached, not shown";
  }
  if (change === undefined) return NOTHING;
  if (!Number.isFinite(change)) return isShown ? "better: the baseline has none" : "the baseline has none, not shown";
  const shown = (value: number): string => signed(100 * value, 1);
  const size = `${shown(change)} ${metric.kind === "share" ? "pp" : "%"}`;
  const range = interval === undefined ? "" : ` (${shown(interval.low)} to ${shown(interval.high)})`;
  if (!isShown) return `${size}${range}, not shown`;
  return `${outcome === "worse" ? "**worse**" : "better"}: ${size}${range}`;
}

function numbers(model: ReportModel): Block {
  const column = levelColumn(model);
  const hasSlo = Object.keys(model.slo).length > 0;
  const throughput = throughputOf(model.groups);
  const rows = model.levels.flatMap((level) =>
    model.arms.flatMap(({ name }) => {
      const group = groupAt(model, name, level);
      if (group === undefined) return [];
      const compared = comparisonAt(model, group);
      return [
        [
          column.of(level),
          name,
          percent(shareOf(group, hasSlo)),
          ms(group.latencies.ttftMs.offered.p95),
          number(throughput(group).tokens),
          number(perOffered(group)),
          pairedText(compared?.paired),
          compared === undefined
            ? name === model.baseline
              ? "baseline"
              : NOTHING
            : VERDICT_WORDS[compared.verdict.kind],
        ],
      ];
    }),
  );
  return table(
    "Over all offered requests",
    [
      column.title,
      "<Arm",
      hasSlo ? "Within the SLO" : "Completed",
      "TTFT p95 (ms)",
      "Output tokens/s",
      "Output tokens per offered request",
      "Paired TTFT difference (median, 95 % interval)",
      "<Verdict",
    ],
    rows,
  );
}

function comparisonAt(model: ReportModel, group: ArmAtLevel): LevelComparison | undefined {
  return model.comparisons.flatMap(({ levels }) => levels).find(({ arm }) => arm === group);
}

function shareOf(
  { goodputShare, accounting: { offered, completed } }: ArmAtLevel,
  hasSlo: boolean,
): number | undefined {
  if (hasSlo) return goodputShare;
  return offered === 0 ? undefined : completed / offered;
}

function perOffered({ tokens, accounting: { offered } }: ArmAtLevel): number | undefined {
  return tokens.outputTotal === undefined || offered === 0 ? undefined : tokens.outputTotal / offered;
}

/** The median difference with its interval, whose ends may be infinite. */
export function pairedText(paired: PairedView | undefined): string {
  if (paired === undefined) return NOTHING;
  const { medianDifference, medianInterval } = paired.ttft;
  const end = (value: number): string => (Number.isFinite(value) ? signed(value) : value > 0 ? "+∞" : "−∞");
  const middle = medianDifference === null ? "beyond what completed" : `${signed(medianDifference)} ms`;
  return medianInterval === null ? middle : `${middle} (${end(medianInterval.low)} to ${end(medianInterval.high)})`;
}
