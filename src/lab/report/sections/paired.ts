import { type Block, type Section, table, text } from "../document.ts";
import { number, percent, signed, whole } from "../format.ts";
import type { ReportModel } from "../model.ts";
import type { LevelComparison } from "../comparisons.ts";
import { withheld } from "../verdict.ts";
import { levelColumn } from "./levels.ts";
import { pairedText } from "./verdict.ts";

/** The same request in both arms. */
export function pairedSection(model: ReportModel): Section {
  const id = "paired";
  const title = "Paired: the same request in both arms";
  const compared = model.comparisons.flatMap(({ levels }) => levels);
  if (compared.every(({ paired }) => paired === undefined)) {
    const why =
      model.comparisons.length === 0
        ? "Needs two arms."
        : "Needs a record of each request in both arms, under the same ids for the same prompts; the sources do not have that.";
    return { id, title, blocks: [text(why)] };
  }
  const column = levelColumn(model);
  const rows = compared.flatMap(({ level, arm, paired, verdict }) => {
    if (paired === undefined) return [];
    const { ttft, e2e } = paired;
    return [
      [
        column.of(level),
        arm.arm,
        whole(ttft.pairs),
        whole(ttft.unpaired),
        whole(ttft.faster),
        whole(ttft.slower),
        whole(ttft.equal),
        whole(ttft.onlyBaselineCompleted),
        whole(ttft.onlyTreatmentCompleted),
        pairedText(paired),
        signed(ttft.hodgesLehmann ?? undefined),
        signed(ttft.meanDifference ?? undefined),
        `${ttft.runs.negative} of ${ttft.runs.runs}`,
        withheld(verdict) ?? ttft.verdict.replaceAll("-", " "),
        signed(e2e.medianDifference ?? undefined),
      ],
    ];
  });
  const blocks: Block[] = [
    table(
      `TTFT of each request, arm − ${model.baseline}`,
      [
        column.title,
        "<Arm",
        "Pairs",
        "Unpaired",
        "Faster",
        "Slower",
        "Equal",
        "Only baseline completed",
        "Only arm completed",
        "Median difference (95 % interval)",
        "Hodges–Lehmann (ms)",
        "Mean, both completed (ms)",
        "Runs that are faster",
        "<Verdict",
        "E2E median (ms)",
      ],
      rows,
    ),
    ...bandTables(compared, column.of),
    text(
      "A request that only one arm completed is a loss of the other. Intervals draw neighbours together, since requests that arrive one after the other share queues. " +
        "In a closed loop, and in conversations, the faster arm gets to more requests in its window; those have no partner and are counted as unpaired. " +
        "Where arms cannot be compared at a level, or one completed fewer requests and was quicker with the rest, pairs make no verdict either.",
    ),
  ];
  return { id, title, blocks };
}

function bandTables(
  compared: readonly LevelComparison[],
  levelOf: (level: LevelComparison["level"]) => string,
): Block[] {
  const rows = compared.flatMap(({ level, arm, paired }) =>
    (paired?.bands ?? []).map((band) => [
      levelOf(level),
      arm.arm,
      band.title,
      whole(band.pairs),
      percent(band.faster / band.pairs),
      percent(band.slower / band.pairs),
      number(band.medianMs),
    ]),
  );
  if (rows.length === 0) return [];
  const columns = ["Level", "<Arm", "<Requests", "Pairs", "Faster", "Slower", "Median difference (ms)"];
  return [table("By length and turn", columns, rows)];
}
