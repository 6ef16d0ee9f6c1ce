import type { LatencyName } from "../cell.ts";
import type { ArmComparison, LevelComparison } from "../comparisons.ts";
import { type Block, type Section, table, text } from "../document.ts";
import { ms, NOTHING, percent, signed, signedPercent, whole } from "../format.ts";
import type { ArmAtLevel } from "../groups.ts";
import { groupAt, type ReportModel } from "../model.ts";
import { type Reading, type Readings, valueOf } from "../reading.ts";
import { withheld } from "../verdict.ts";
import { type LevelColumn, levelColumn } from "./levels.ts";

/** TTFT as the published studies print it, each arm beside the baseline, and then in both populations. */
export function ttftSection(model: ReportModel): Section {
  const column = levelColumn(model);
  const blocks: Block[] = model.comparisons.flatMap((comparison) => [
    ...pairTables(comparison, column, "ttftMs", "TTFT", true),
  ]);
  blocks.push(populationsTable(model, "ttftMs", "TTFT"));
  blocks.push(
    text(
      "Δ is positive where the arm is better, and left out where arms that completed different shares cannot be compared. The mean of snapshot percentiles is what studies print that read a dashboard; it hides a bad stretch, so verdicts " +
        "use the percentile over all requests together. A range says that only the runs' own percentiles are known. p99 is shown from 1,000 requests on.",
    ),
  );
  return { id: "ttft", title: "Time to first token", blocks };
}

/** ITL per gap and per request. */
export function itlSection(model: ReportModel): Section {
  const column = levelColumn(model);
  const blocks: Block[] = model.comparisons.flatMap((comparison) => [
    ...pairTables(comparison, column, "tpotMs", "ITL per request (TPOT)", false),
    ...pairTables(comparison, column, "itlMs", "ITL per gap", false),
  ]);
  blocks.push(populationsTable(model, "tpotMs", "TPOT"), populationsTable(model, "itlMs", "ITL per gap"));
  blocks.push(
    text(
      "Studies call either of them inter-token latency: the time per output token of a request, or the gap between two chunks.",
    ),
  );
  return { id: "itl", title: "Inter-token latency", blocks };
}

export function e2eSection(model: ReportModel): Section {
  const column = levelColumn(model);
  const blocks: Block[] = model.comparisons.flatMap((comparison) =>
    pairTables(comparison, column, "e2eMs", "E2E", false),
  );
  blocks.push(populationsTable(model, "e2eMs", "E2E"));
  return { id: "e2e", title: "End-to-end latency", blocks };
}

/** An arm beside the baseline: once as the mean over snapshots and runs, once over all requests together. */
function pairTables(
  comparison: ArmComparison,
  column: LevelColumn,
  name: LatencyName,
  title: string,
  hasHits: boolean,
): Block[] {
  const { arm, baseline, levels } = comparison;
  if (levels.length === 0) return [];
  const kinds: readonly { title: string; of: (group: ArmAtLevel) => Readings | undefined }[] = [
    { title: "mean over snapshots and runs, completed requests", of: ({ snapshotMeans }) => snapshotMeans?.[name] },
    ...(levels.some(({ arm: group }) => group.snapshotMeans === undefined)
      ? [{ title: "mean over runs, completed requests", of: ({ runMeans }: ArmAtLevel) => runMeans[name] }]
      : []),
    { title: "all requests together, completed", of: ({ latencies }) => latencies[name].completed },
  ];
  return kinds.flatMap((kind): Block[] => {
    if (levels.every((level) => kind.of(level.arm) === undefined && kind.of(level.baseline) === undefined)) return [];
    const columns = [
      column.title,
      `${baseline} p50 (ms)`,
      `${arm} p50 (ms)`,
      "p50 Δ",
      `${baseline} p95 (ms)`,
      `${arm} p95 (ms)`,
      "p95 Δ",
      ...(hasHits ? [`${baseline} hit rate`, `${arm} hit rate`] : []),
    ];
    const rows = levels.map((level) => pairRow(level, column, kind.of, hasHits));
    return [table(`${title}, ${arm} beside ${baseline}: ${kind.title}`, columns, rows)];
  });
}

function pairRow(
  { level, baseline, arm, verdict }: LevelComparison,
  column: LevelColumn,
  of: (group: ArmAtLevel) => Readings | undefined,
  hasHits: boolean,
): string[] {
  const [x, y] = [of(baseline), of(arm)];
  const reason = areEquallyComplete(baseline, arm) ? undefined : withheld(verdict);
  const cells = (["p50", "p95"] as const).flatMap((statistic) => [
    x === undefined ? NOTHING : ms(x[statistic]),
    y === undefined ? NOTHING : ms(y[statistic]),
    reason === undefined ? improvementText(x?.[statistic], y?.[statistic]) : `${NOTHING}, ${reason}`,
  ]);
  const hits = hasHits ? [percent(baseline.cache.observed), percent(arm.cache.observed)] : [];
  return [column.of(level), ...cells, ...hits];
}

/** Whether both completed the same share, to half a percentage point; else completed requests are not the same ones. */
function areEquallyComplete(...groups: readonly ArmAtLevel[]): boolean {
  const [x, y] = groups.map(({ accounting: { offered, completed } }) => completed / Math.max(1, offered));
  return Math.abs(x - y) < 0.005;
}

/** How much less the arm's value is: positive is better, as the studies have it. */
function improvementText(baseline: Reading | undefined, arm: Reading | undefined): string {
  const [x, y] = [baseline, arm].map((reading) => (reading === undefined ? undefined : valueOf(reading)));
  if (x === undefined || y === undefined || x === 0) return NOTHING;
  return `${signedPercent((x - y) / x)} (${signed(y - x)} ms)`;
}

/** Every arm and level in both populations, with n. */
function populationsTable(model: ReportModel, name: LatencyName, title: string): Block {
  const column = levelColumn(model);
  const rows = model.levels.flatMap((level) =>
    model.arms.flatMap((arm) => {
      const group = groupAt(model, arm.name, level);
      if (group === undefined) return [];
      return (["completed", "offered"] as const).map((population) => {
        const readings = group.latencies[name][population];
        return [
          column.of(level),
          arm.name,
          population,
          whole(readings.n),
          ms(readings.mean),
          ms(readings.p50),
          ms(readings.p90),
          ms(readings.p95),
          ms(readings.p99),
        ];
      });
    }),
  );
  const columns = [column.title, "<Arm", "<Population", "n", "Mean (ms)", "p50", "p90", "p95", "p99"];
  return table(`${title} in both populations, all runs together`, columns, rows);
}
