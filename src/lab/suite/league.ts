import { keptDiscoveries } from "../../measure/false-discovery.ts";
import { percentileOfSorted } from "../../measure/percentile.ts";
import { meanOf } from "../../measure/sample.ts";
import { type Comparison, compareArms } from "./compare.ts";
import { type ArmScore, JUDGED_MEASURES, type JudgedMeasure } from "./score.ts";
import type { SuiteArm, SuiteCell } from "./types.ts";

/** A cell that every arm has run. */
export interface ScoredCell {
  readonly cell: SuiteCell;
  /** Requests per second at which round-robin saturates, and those that were offered. */
  readonly saturationRps: number;
  readonly offeredRps: number;
  /** By arm, in the order of the arms. */
  readonly scores: readonly ArmScore[];
}

/** What is relative to the best arm of a cell. */
export const REGRET_MEASURES = ["ttftP95Ms", "e2eMeanMs", "ttftP50Ms", "tpotP95Ms", "goodputShare"] as const;

export type RegretMeasure = (typeof REGRET_MEASURES)[number];

/** How far above the best arm of its cell; 0 is the best, 0.05 is 5 % more (for goodput: less). */
export type Regret = number;

/** An arm on a judged measure in a cell. */
export interface Judgement {
  readonly regret: Regret;
  /** Against the best arm of the cell. */
  readonly toBest: Comparison;
  readonly toReference: Comparison;
  readonly isWithin: boolean;
  /** As `isWithin`, or not shown to be further away than that. */
  readonly isWithinNoise: boolean;
  /** Slower than the reference, and kept with a false-discovery rate of 5 % over all cells and both measures. */
  readonly isWorse: boolean;
}

/** An arm over all cells. */
export interface LeagueRow {
  readonly arm: SuiteArm;
  /** By measure, then by cell. */
  readonly judged: Readonly<Record<JudgedMeasure, readonly Judgement[]>>;
  readonly regrets: Readonly<Record<RegretMeasure, readonly Regret[]>>;
}

const NEAR = Math.log(1.05);
const FALSE_DISCOVERY_RATE = 0.05;
/** What a measure that was not reached counts as in means. */
const MOST_REGRET = 100;

/** Judges every arm in every cell against the cell's best arm and against the reference, which is one of the arms. */
export function leagueOf(
  arms: readonly SuiteArm[],
  cells: readonly ScoredCell[],
  reference: string,
  partsPerRun: number,
): LeagueRow[] {
  const referenceAt = arms.findIndex(({ name }) => name === reference);
  return arms.map((arm, at) => {
    const drafts = JUDGED_MEASURES.map((measure) =>
      cells.map(({ scores }) => {
        const best = scores[bestArm(scores, measure)];
        return {
          regret: regretOf(scores, at, measure),
          toBest: compareArms(scores[at], best, measure, partsPerRun),
          toReference: compareArms(scores[at], scores[referenceAt], measure, partsPerRun),
        };
      }),
    );
    // One family per arm: of the cells in which this arm is called worse, 5 % may be chance.
    const worse = keptDiscoveries(
      drafts.flat().map(({ toReference }) => toReference.chanceSlower),
      FALSE_DISCOVERY_RATE,
    );
    const judged = Object.fromEntries(
      JUDGED_MEASURES.map((measure, m) => [
        measure,
        drafts[m].map((draft, c): Judgement => {
          const { logRatio, halfWidth } = draft.toBest;
          const isWithin = logRatio <= NEAR;
          return {
            ...draft,
            isWithin,
            isWithinNoise: isWithin || logRatio - halfWidth <= NEAR,
            isWorse: worse[m * cells.length + c],
          };
        }),
      ]),
    ) as Record<JudgedMeasure, Judgement[]>;
    const regrets = Object.fromEntries(
      REGRET_MEASURES.map((measure) => [measure, cells.map(({ scores }) => regretOf(scores, at, measure))]),
    ) as Record<RegretMeasure, Regret[]>;
    return { arm, judged, regrets };
  });
}

/** The arm that has the lowest value of a measure (the highest goodput) in a cell. */
export function bestArm(scores: readonly ArmScore[], measure: RegretMeasure): number {
  let best = 0;
  for (let at = 1; at < scores.length; at++) if (costOf(scores[at], measure) < costOf(scores[best], measure)) best = at;
  return best;
}

function regretOf(scores: readonly ArmScore[], at: number, measure: RegretMeasure): Regret {
  const own = costOf(scores[at], measure);
  const best = costOf(scores[bestArm(scores, measure)], measure);
  if (own === best) return 0;
  if (measure === "goodputShare") return 1 - own / best;
  return own / best - 1;
}

function costOf(score: ArmScore, measure: RegretMeasure): number {
  if (measure === "goodputShare") return -score.goodputShare;
  return score[measure] ?? Infinity;
}

/** Regrets of many cells in a few numbers. */
export interface RegretSummary {
  readonly mean: number;
  readonly median: number;
  readonly p90: number;
  readonly worst: number;
}

/** Summarises regrets; one without end counts as 100 times the best in the mean. */
export function summariseRegrets(regrets: readonly Regret[]): RegretSummary {
  const sorted = Float64Array.from(regrets).sort();
  return {
    mean: meanOf(regrets.map((regret) => Math.min(regret, MOST_REGRET))),
    median: percentileOfSorted(sorted, 0.5),
    p90: percentileOfSorted(sorted, 0.9),
    worst: sorted.at(-1) ?? Number.NaN,
  };
}

/** The mean regret of both judged measures, by which the league is ordered. */
export function overallRegret({ regrets }: LeagueRow): number {
  return meanOf(JUDGED_MEASURES.map((measure) => summariseRegrets(regrets[measure]).mean));
}
