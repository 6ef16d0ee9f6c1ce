import {
  type LeagueRow,
  overallRegret,
  REGRET_MEASURES,
  type RegretMeasure,
  type ScoredCell,
  summariseRegrets,
  bestArm,
} from "./league.ts";
import { JUDGED_MEASURES, type JudgedMeasure } from "./score.ts";

/** A table as titles and rows, for a terminal or a page. */
export interface Table {
  readonly titles: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** What a measure is called. */
export const MEASURE_TITLES: Readonly<Record<RegretMeasure, string>> = {
  ttftP95Ms: "p95 TTFT",
  ttftP50Ms: "p50 TTFT",
  e2eMeanMs: "mean E2E",
  tpotP95Ms: "p95 TPOT",
  goodputShare: "goodput",
};

const NAMES: Readonly<Record<JudgedMeasure, string>> = { ttftP95Ms: "TTFT", e2eMeanMs: "E2E" };

/** The league: lowest mean regret first. */
export function leagueTable(league: readonly LeagueRow[]): Table {
  const titles = ["policy", "mean regret"];
  for (const measure of JUDGED_MEASURES) {
    titles.push(`${MEASURE_TITLES[measure]}: mean`, "median", "p90", "worst");
    titles.push("within 5 %", "with noise", "worse than round-robin");
  }
  const rows = [...league]
    .sort((a, b) => overallRegret(a) - overallRegret(b))
    .map((row) => {
      const cells = [row.arm.name, percent(overallRegret(row))];
      for (const measure of JUDGED_MEASURES) {
        const { mean, median, p90, worst } = summariseRegrets(row.regrets[measure]);
        const judged = row.judged[measure];
        cells.push(percent(mean), percent(median), percent(p90), percent(worst));
        cells.push(
          share(judged, ({ isWithin }) => isWithin),
          share(judged, ({ isWithinNoise }) => isWithinNoise),
          String(judged.filter(({ isWorse }) => isWorse).length),
        );
      }
      return cells;
    });
  return { titles, rows };
}

/** One arm by a property of the cells: by workload, by load, by what is perturbed. */
export function groupTable(
  row: LeagueRow,
  cells: readonly ScoredCell[],
  title: string,
  groupOf: (cell: ScoredCell) => string,
): Table {
  const groups = new Map<string, number[]>();
  for (const [at, cell] of cells.entries()) {
    const group = groupOf(cell);
    groups.set(group, [...(groups.get(group) ?? []), at]);
  }
  const titles = [title, "cells"];
  for (const measure of JUDGED_MEASURES) {
    titles.push(`${NAMES[measure]} regret`, "worst", "within 5 %", "with noise", "worse than round-robin");
  }
  const rows = Array.from(groups, ([group, members]) => {
    const line = [group, String(members.length)];
    for (const measure of JUDGED_MEASURES) {
      const judged = members.map((at) => row.judged[measure][at]);
      const { mean, worst } = summariseRegrets(judged.map(({ regret }) => regret));
      line.push(percent(mean), percent(worst));
      line.push(
        share(judged, ({ isWithin }) => isWithin),
        share(judged, ({ isWithinNoise }) => isWithinNoise),
        String(judged.filter(({ isWorse }) => isWorse).length),
      );
    }
    return line;
  });
  return { titles, rows };
}

/** Cells in which an arm is furthest from the best. */
export function worstCells(
  row: LeagueRow,
  league: readonly LeagueRow[],
  cells: readonly ScoredCell[],
  measure: JudgedMeasure,
  count: number,
): Table {
  const at = league.indexOf(row);
  const order = Array.from(cells.keys()).sort((a, b) => row.judged[measure][b].regret - row.judged[measure][a].regret);
  const rows = order.slice(0, count).map((index) => {
    const { cell, scores } = cells[index];
    const best = bestArm(scores, measure);
    const { toBest, isWorse } = row.judged[measure][index];
    return [
      cell.id,
      ms(scores[at][measure]),
      league[best].arm.name,
      ms(scores[best][measure]),
      percent(row.judged[measure][index].regret),
      `± ${percent(Math.expm1(toBest.halfWidth))}`,
      isWorse ? "worse than round-robin" : "",
    ];
  });
  return {
    titles: ["cell", MEASURE_TITLES[measure], "best", "its value", "regret", "noise", ""],
    rows,
  };
}

/** Every cell: the best arm with its value, and the regret of each arm in per cent. */
export function regretTable(league: readonly LeagueRow[], cells: readonly ScoredCell[], measure: RegretMeasure): Table {
  const rows = cells.map(({ cell, scores }, at) => {
    const best = bestArm(scores, measure);
    const value = measure === "goodputShare" ? percent(scores[best].goodputShare) : ms(scores[best][measure]);
    return [cell.id, league[best].arm.name, value, ...league.map(({ regrets }) => percent(regrets[measure][at]))];
  });
  return { titles: ["cell", "best", "its value", ...league.map(({ arm }) => arm.name)], rows };
}

/** All regret tables, one after the other. */
export function regretTables(league: readonly LeagueRow[], cells: readonly ScoredCell[]): [RegretMeasure, Table][] {
  return REGRET_MEASURES.map((measure) => [measure, regretTable(league, cells, measure)]);
}

/** A table as Markdown. */
export function markdownTable({ titles, rows }: Table): string[] {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  return [line(titles), line(titles.map((_, at) => (at === 0 ? "---" : "--:"))), ...rows.map(line)];
}

/** A share for people: 12.3 %, or ∞ for what was not reached. */
export function percent(value: number): string {
  if (!Number.isFinite(value)) return "∞";
  return `${(100 * value).toFixed(Math.abs(value) < 9.995 ? 1 : 0)} %`;
}

function ms(value: number | null): string {
  return value === null ? "not reached" : `${value.toFixed(value < 100 ? 1 : 0)} ms`;
}

function share<Item>(items: readonly Item[], is: (item: Item) => boolean): string {
  return items.length === 0 ? "-" : percent(items.filter(is).length / items.length);
}
