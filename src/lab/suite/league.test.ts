import { describe, expect, test } from "vitest";
import { compareArms } from "./compare.ts";
import { leagueOf, overallRegret, type ScoredCell, summariseRegrets } from "./league.ts";
import type { ArmScore } from "./score.ts";
import { groupTable, leagueTable, markdownTable, regretTable, worstCells } from "./tables.ts";
import type { SuiteArm } from "./types.ts";

const PARTS = 2;
const RUNS = 4;

/** An arm whose measures without each part differ from the whole by the given factors. */
function score(ttftP95Ms: number | null, e2eMeanMs: number | null, wobble: readonly number[] = []): ArmScore {
  const without = (value: number | null): (number | null)[] =>
    Array.from({ length: PARTS * RUNS }, (_, at) => (value === null ? null : value * (1 + (wobble[at] ?? 0))));
  return {
    offered: 100,
    completed: 100,
    ttftP95Ms,
    ttftP50Ms: ttftP95Ms,
    e2eMeanMs,
    tpotP95Ms: 10,
    goodputShare: 0.8,
    hitShare: 0.5,
    without: { ttftP95Ms: without(ttftP95Ms), e2eMeanMs: without(e2eMeanMs) },
  };
}

const NOISE = [0.02, -0.02, 0.01, -0.01, 0.02, -0.01, -0.02, 0.01];
const ARMS = ["round-robin", "good", "bad"].map((name): SuiteArm => ({ name, policy: name, parameters: {} }));

function cell(at: number, scores: readonly ArmScore[]): ScoredCell {
  return {
    cell: { id: `w/load-1/workers-${at}`, workload: "w", load: 1, workers: at },
    saturationRps: 10,
    offeredRps: 10,
    scores,
  };
}

describe("compareArms", () => {
  test("finds what is the same in every part, and not what the noise may have made", () => {
    const sure = compareArms(score(200, 1), score(100, 1), "ttftP95Ms", PARTS);
    expect(sure).toEqual({ logRatio: Math.log(2), halfWidth: 0, chanceSlower: 0 });
    const noisy = compareArms(score(102, 1, NOISE), score(100, 1), "ttftP95Ms", PARTS);
    expect(noisy.logRatio).toBeCloseTo(Math.log(1.02), 12);
    expect(noisy.halfWidth).toBeGreaterThan(noisy.logRatio);
    expect(noisy.chanceSlower).toBeGreaterThan(0.1);
    expect(noisy.chanceSlower).toBeLessThan(0.5);
  });

  test("has noise that both arms share cancel out", () => {
    const { halfWidth, chanceSlower } = compareArms(score(110, 1, NOISE), score(100, 1, NOISE), "ttftP95Ms", PARTS);
    expect(halfWidth).toBeLessThan(1e-9);
    expect(chanceSlower).toBeLessThan(1e-9);
  });

  test("takes what was not reached for worse than anything that was", () => {
    expect(compareArms(score(null, 1), score(9e9, 1), "ttftP95Ms", PARTS)).toMatchObject({ chanceSlower: 0 });
    expect(compareArms(score(1, 1), score(null, 1), "ttftP95Ms", PARTS)).toMatchObject({ chanceSlower: 1 });
    expect(compareArms(score(null, 1), score(null, 1), "ttftP95Ms", PARTS)).toMatchObject({ logRatio: 0 });
  });
});

describe("the league", () => {
  const cells = [
    cell(2, [score(100, 1000), score(100, 1000), score(300, 1500)]),
    cell(3, [score(200, 1000), score(100, 1040), score(200, 1000)]),
    cell(4, [score(100, 1000), score(104, 900, NOISE), score(null, 1200)]),
  ];
  const league = leagueOf(ARMS, cells, "round-robin", PARTS);
  const [reference, good, bad] = league;

  test("has the regret of every arm against the best of each cell", () => {
    expect(reference.regrets.ttftP95Ms).toEqual([0, 1, 0]);
    expect(good.regrets.e2eMeanMs.map(rounded)).toEqual([0, 0.04, 0]);
    expect(bad.regrets.ttftP95Ms).toEqual([2, 1, Infinity]);
    expect(bad.regrets.goodputShare).toEqual([0, 0, 0]);
    expect(summariseRegrets(bad.regrets.ttftP95Ms)).toEqual({
      mean: 103 / 3,
      median: 2,
      p90: Infinity,
      worst: Infinity,
    });
    expect(overallRegret(reference)).toBeCloseTo((1 / 3 + 0.1111111 / 3) / 2, 6);
  });

  test("says who is near the best, and who is worse than the reference", () => {
    expect(good.judged.ttftP95Ms.map(({ isWithin }) => isWithin)).toEqual([true, true, true]);
    expect(reference.judged.ttftP95Ms.map(({ isWithinNoise }) => isWithinNoise)).toEqual([true, false, true]);
    expect(reference.judged.e2eMeanMs.map(({ isWithin }) => isWithin)).toEqual([true, true, false]);
    expect(bad.judged.ttftP95Ms.map(({ isWorse }) => isWorse)).toEqual([true, false, true]);
    expect(good.judged.e2eMeanMs.map(({ isWorse }) => isWorse)).toEqual([false, true, false]);
    expect(good.judged.ttftP95Ms.map(({ isWorse }) => isWorse)).toEqual([false, false, false]);
  });

  test("is printed with the lowest regret first", () => {
    const { titles, rows } = leagueTable(league);
    expect(rows.map(([name]) => name)).toEqual(["good", "round-robin", "bad"]);
    for (const row of rows) expect(row).toHaveLength(titles.length);
    expect(markdownTable(leagueTable(league))[2]).toMatch(/^\| good \| 1\.3 % \|/);
  });

  test("is taken apart by groups of cells, worst cells and single regrets", () => {
    const groups = groupTable(bad, cells, "workers", ({ cell: { workers } }) => (workers < 4 ? "few" : "many"));
    expect(groups.rows.map((row) => row.slice(0, 3))).toEqual([
      ["few", "2", "150.0 %"],
      ["many", "1", "10000 %"],
    ]);
    expect(worstCells(bad, league, cells, "ttftP95Ms", 1).rows).toEqual([
      ["w/load-1/workers-4", "not reached", "round-robin", "100 ms", "∞", "± 0.0 %", "worse than round-robin"],
    ]);
    expect(regretTable(league, cells, "ttftP95Ms").rows[1]).toEqual([
      "w/load-1/workers-3",
      "good",
      "100 ms",
      "100.0 %",
      "0.0 %",
      "100.0 %",
    ]);
  });
});

function rounded(value: number): number {
  return Math.round(value * 1e9) / 1e9;
}
