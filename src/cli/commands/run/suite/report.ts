import { mkdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { REFERENCE } from "../../../../lab/suite/arms.ts";
import {
  type LeagueRow,
  overallRegret,
  REGRET_MEASURES,
  type ScoredCell,
  summariseRegrets,
} from "../../../../lab/suite/league.ts";
import { JUDGED_MEASURES } from "../../../../lab/suite/score.ts";
import type { SuiteConditions } from "../../../../lab/suite/types.ts";
import {
  groupTable,
  leagueTable,
  markdownTable,
  MEASURE_TITLES,
  percent,
  regretTables,
  type Table,
  worstCells,
} from "../../../../lab/suite/tables.ts";
import { LEAGUE_FILE, REGRET_FILE, SUITE_FILE } from "./suite-folder.ts";

/** A suite that was run, as far as it was. */
export interface SuiteReport {
  readonly suite: string;
  readonly quick: boolean;
  readonly candidate: string;
  readonly conditions: SuiteConditions;
  readonly planned: number;
  readonly cells: readonly ScoredCell[];
  readonly league: readonly LeagueRow[];
  /** Workloads that were left out, and why. */
  readonly skipped: readonly string[];
}

const SHOWN_WORST = 15;

/** Writes suite.json, league.md and regret.md. */
export async function writeReport(folder: string, report: SuiteReport): Promise<void> {
  await mkdir(folder, { recursive: true });
  await writeWhole(join(folder, SUITE_FILE), `${JSON.stringify(reportJson(report), null, 1)}\n`);
  await writeWhole(join(folder, LEAGUE_FILE), `${leagueLines(report).join("\n")}\n`);
  await writeWhole(join(folder, REGRET_FILE), `${regretLines(report).join("\n")}\n`);
}

/** Everything as plain data. */
export function reportJson(report: SuiteReport): object {
  const { suite, quick, candidate, conditions, planned, cells, league, skipped } = report;
  return {
    schemaVersion: 1,
    suite,
    quick,
    candidate,
    ...conditions,
    cellsPlanned: planned,
    cellsFinished: cells.length,
    skipped,
    league: league.map((row) => ({
      ...row.arm,
      overallRegret: overallRegret(row),
      regret: Object.fromEntries(
        REGRET_MEASURES.map((measure) => [measure, finite(summariseRegrets(row.regrets[measure]))]),
      ),
      judged: Object.fromEntries(
        JUDGED_MEASURES.map((measure) => {
          const judged = row.judged[measure];
          return [
            measure,
            {
              within: judged.filter(({ isWithin }) => isWithin).length / judged.length,
              withinNoise: judged.filter(({ isWithinNoise }) => isWithinNoise).length / judged.length,
              worse: judged.flatMap(({ isWorse }, at) => (isWorse ? cells[at].cell.id : [])),
            },
          ];
        }),
      ),
    })),
    cells: cells.map(({ cell, saturationRps, offeredRps, scores }, c) => ({
      ...cell,
      saturationRps,
      offeredRps,
      arms: scores.map((score, at) => ({
        arm: league[at].arm.name,
        ...score,
        regret: finite(Object.fromEntries(REGRET_MEASURES.map((measure) => [measure, league[at].regrets[measure][c]]))),
        toReference: Object.fromEntries(
          JUDGED_MEASURES.map((measure) => [measure, finite({ ...league[at].judged[measure][c].toReference })]),
        ),
        toBest: Object.fromEntries(
          JUDGED_MEASURES.map((measure) => [measure, finite({ ...league[at].judged[measure][c].toBest })]),
        ),
      })),
    })),
  };
}

/** What a reader wants to know first of the candidate, one line each. */
export function verdictLines({ candidate, league, cells }: SuiteReport): string[] {
  const row = league.find(({ arm }) => arm.name === candidate);
  if (row === undefined || cells.length === 0) return [];
  const worse = JUDGED_MEASURES.map(
    (measure) => `${row.judged[measure].filter(({ isWorse }) => isWorse).length} on ${MEASURE_TITLES[measure]}`,
  );
  const near = JUDGED_MEASURES.map((measure) => {
    const judged = row.judged[measure];
    const share = (is: (one: (typeof judged)[number]) => boolean): string =>
      percent(judged.filter(is).length / judged.length);
    return `${MEASURE_TITLES[measure]} ${share(({ isWithin }) => isWithin)} of cells (${share(({ isWithinNoise }) => isWithinNoise)} with noise)`;
  });
  const rival = league
    .filter(({ arm }) => arm.name !== candidate)
    .reduce<LeagueRow | undefined>(
      (best, one) => (best === undefined || overallRegret(one) < overallRegret(best) ? one : best),
      undefined,
    );
  const against =
    rival === undefined ? "" : `; the best of the others, ${rival.arm.name}, ${percent(overallRegret(rival))}`;
  return [
    `${candidate} is worse than ${REFERENCE} in ${worse.join(" and ")} of ${cells.length} cells (false-discovery rate 5 %)`,
    `within 5 % of the best policy: ${near.join(", ")}`,
    `mean regret ${percent(overallRegret(row))}${against}`,
  ];
}

function leagueLines(report: SuiteReport): string[] {
  const { suite, quick, candidate, cells, planned, league, skipped } = report;
  const row = league.find(({ arm }) => arm.name === candidate);
  const lines = [
    `# ${suite}${quick ? " (quick)" : ""}: league`,
    "",
    `${cells.length} of ${planned} cells, ${league.length} arms. Regret is how far a policy is above the best one of its cell;`,
    "a measure that was not reached counts as 100 times the best in means.",
    "",
    ...verdictLines(report).map((line) => `- ${line}`),
    ...skipped.map((line) => `- left out: ${line}`),
    "",
    ...markdownTable(leagueTable(league)),
  ];
  if (row === undefined || cells.length === 0) return lines;
  const section = (title: string, table: Table): void =>
    void lines.push("", `## ${title}`, "", ...markdownTable(table));
  section(
    `${candidate} by workload`,
    groupTable(row, cells, "workload", ({ cell }) => cell.workload),
  );
  section(
    `${candidate} by load`,
    groupTable(row, cells, "load", ({ cell }) => String(cell.load)),
  );
  section(
    `${candidate} by workers`,
    groupTable(row, cells, "workers", ({ cell }) => String(cell.workers)),
  );
  section(
    `${candidate} by perturbation`,
    groupTable(row, cells, "perturbation", ({ cell }) => cell.perturbation?.name ?? "none"),
  );
  for (const measure of JUDGED_MEASURES) {
    section(
      `${candidate}, furthest from the best on ${MEASURE_TITLES[measure]}`,
      worstCells(row, league, cells, measure, SHOWN_WORST),
    );
  }
  return lines;
}

function regretLines({ suite, quick, league, cells }: SuiteReport): string[] {
  const lines = [`# ${suite}${quick ? " (quick)" : ""}: regret per cell`];
  for (const [measure, table] of regretTables(league, cells)) {
    lines.push("", `## ${MEASURE_TITLES[measure]}`, "", ...markdownTable(table));
  }
  return lines;
}

/** JSON has no infinity; what was not reached is null. */
function finite(numbers: object): object {
  return Object.fromEntries(
    Object.entries(numbers).map(([name, value]) => [name, Number.isFinite(value) ? (value as number) : null]),
  );
}

async function writeWhole(path: string, text: string): Promise<void> {
  await writeFile(`${path}.partial`, text);
  await rename(`${path}.partial`, path);
}
