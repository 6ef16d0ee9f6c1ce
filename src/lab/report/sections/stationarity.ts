import { type Block, list, type Section, table, text } from "../document.ts";
import { NOTHING, number } from "../format.ts";
import type { ArmAtLevel } from "../groups.ts";
import { groupAt, type ReportModel } from "../model.ts";
import { levelTitle } from "../cell.ts";
import { levelColumn } from "./levels.ts";

/** TTFT by arrival, and whether what was measured depends on how long one looked. */
export function stationaritySection(model: ReportModel): Section {
  const id = "stationarity";
  const title = "Stationarity: TTFT by arrival";
  const groups = model.levels.flatMap((level) => model.arms.flatMap(({ name }) => groupAt(model, name, level) ?? []));
  const judged = groups.filter(({ cells }) => cells.every(({ stationarity }) => stationarity !== undefined));
  if (judged.length === 0) {
    return {
      id,
      title,
      blocks: [text("Needs a record of each request, which the sources do not have: TTFT by arrival is unknown.")],
    };
  }
  const column = levelColumn(model);
  const rows = judged.map((group) => [
    column.of(group.level),
    group.arm,
    ...deciles(group).map((value) => number(value)),
    number(
      meanOf(group, ({ ttftTrend }) => ttftTrend),
      2,
    ),
    number(
      meanOf(group, ({ ttftGrowth }) => ttftGrowth),
      2,
    ),
    number(
      meanOf(group, ({ backlogTrend }) => backlogTrend),
      2,
    ),
    group.saturatedRuns === undefined ? NOTHING : `${group.saturatedRuns} of ${group.cells.length}`,
  ]);
  const blocks: Block[] = [
    table(
      "Median TTFT over offered requests by tenth of arrivals (ms), means over runs",
      [
        column.title,
        "<Arm",
        ...Array.from({ length: 10 }, (_, at) => String(at + 1)),
        "Trend",
        "Growth",
        "Backlog trend",
        "Saturated runs",
      ],
      rows,
    ),
  ];
  const reasons = judged.flatMap((group) => {
    const found = reasonsOf(group);
    return found === undefined ? [] : [`${group.arm}, ${levelTitle(group.level)}: ${found}`];
  });
  if (reasons.length > 0) blocks.push(list(reasons));
  blocks.push(
    text(
      "Trend is Kendall's tau over the tenths: 1 if every later tenth is slower, from 0.6 on it rises. Growth is the last three tenths over the first three. " +
        "A closed loop bounds its own backlog and is never found to grow.",
    ),
  );
  return { id, title, blocks };
}

/** Why an arm is past saturation, by its first run that is, or why that is unknown; undefined where it keeps up. */
function reasonsOf({ cells }: ArmAtLevel): string | undefined {
  const full = cells.find(({ saturated }) => saturated === true)?.stationarity;
  if (full !== undefined) return `overload, every value depends on the length of the run (${full.reasons.join("; ")})`;
  const unknown = cells.filter(({ stationarity }) => (stationarity?.reasons.length ?? 0) > 0);
  if (unknown.length === 0) return undefined;
  const which = unknown.length === cells.length ? "" : ` in ${unknown.length} of ${cells.length} runs`;
  return `whether it kept up cannot be told${which} (${unknown[0].stationarity?.reasons.join("; ")})`;
}

function deciles({ cells }: ArmAtLevel): (number | undefined)[] {
  return Array.from({ length: 10 }, (_, at) => {
    let sum = 0;
    for (const { stationarity } of cells) {
      const value = stationarity?.ttftByDecileMs[at];
      if (value === undefined || value === null) return undefined;
      sum += value;
    }
    return sum / cells.length;
  });
}

function meanOf(
  { cells }: ArmAtLevel,
  of: (stationarity: NonNullable<ArmAtLevel["cells"][number]["stationarity"]>) => number | null,
): number | undefined {
  let sum = 0;
  for (const { stationarity } of cells) {
    const value = stationarity === undefined ? null : of(stationarity);
    if (value === null) return undefined;
    sum += value;
  }
  return sum / cells.length;
}
