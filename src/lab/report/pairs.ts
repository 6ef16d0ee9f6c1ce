import { Rng } from "../../core/rng.ts";
import { comparePaired, type PairedComparison, type PairedValues } from "../../measure/paired.ts";
import { runsOf } from "./cell.ts";
import type { CellEvidence, RequestColumns } from "./evidence.ts";
import type { ArmAtLevel } from "./groups.ts";

/** Two arms request by request, and by length of prompt and turn. */
export interface PairedView {
  readonly ttft: PairedComparison;
  readonly e2e: PairedComparison;
  readonly bands: readonly PairedBand[];
  /** Pairs whose prompts have different lengths; ids that do not name the same requests show here. */
  readonly unlike: number;
}

/** Pairs of one kind: how often the arm was faster, and by how much in the middle. */
export interface PairedBand {
  readonly title: string;
  readonly pairs: number;
  readonly faster: number;
  readonly slower: number;
  readonly medianMs: number | undefined;
}

/** Fewer resamples than elsewhere: a report has tens of these. */
const RESAMPLES = 400;
/** Ids that name other requests in the other arm pair nothing. */
const MOST_UNLIKE = 0.05;

/** Pairs the runs of two arms; undefined where records are missing or ids do not name the same requests. */
export function pairedView(baseline: ArmAtLevel, arm: ArmAtLevel): PairedView | undefined {
  const [before, after] = [baseline.evidence, arm.evidence];
  if (before === undefined || after === undefined) return undefined;
  // A run that stands for others has as many partners as these have that differ, and none of them twice.
  const pairs = baseline.cells.flatMap((cell, at) =>
    arm.cells.flatMap((other, row) =>
      runsOf(cell).some((run) => runsOf(other).includes(run)) ? [pairRun(before[at], after[row])] : [],
    ),
  );
  const total = pairs.reduce((sum, { rows }) => sum + rows.length, 0);
  const unlike = pairs.reduce((sum, pair) => sum + pair.unlike, 0);
  if (total === 0 || unlike > MOST_UNLIKE * total) return undefined;
  const rng = new Rng(1).stream(`${arm.arm} ${baseline.arm}`);
  const options = { resamples: RESAMPLES };
  const values = (column: "ttftMs" | "e2eMs"): PairedValues[] => pairs.map((pair) => valuesOf(pair, column));
  return {
    ttft: comparePaired(values("ttftMs"), rng.stream("ttft"), options),
    e2e: comparePaired(values("e2eMs"), rng.stream("e2e"), options),
    bands: bandsOf(pairs),
    unlike,
  };
}

interface RunPairs {
  readonly baseline: RequestColumns;
  readonly arm: RequestColumns;
  /** Rows of the same request in both. */
  readonly rows: readonly (readonly [baseline: number, arm: number])[];
  readonly unpaired: number;
  readonly unlike: number;
}

function pairRun({ columns: baseline }: CellEvidence, { columns: arm }: CellEvidence): RunPairs {
  const rowOf = new Map<number, number>();
  for (let i = 0; i < arm.length; i++) rowOf.set(arm.id[i], i);
  const rows: [number, number][] = [];
  let unlike = 0;
  for (let i = 0; i < baseline.length; i++) {
    const row = rowOf.get(baseline.id[i]);
    if (row === undefined) continue;
    rows.push([i, row]);
    if (baseline.promptTokens[i] !== arm.promptTokens[row]) unlike += 1;
  }
  return { baseline, arm, rows, unpaired: baseline.length + arm.length - 2 * rows.length, unlike };
}

function valuesOf({ baseline, arm, rows, unpaired }: RunPairs, column: "ttftMs" | "e2eMs"): PairedValues {
  return {
    baseline: Float64Array.from(rows, ([i]) => baseline[column][i]),
    treatment: Float64Array.from(rows, ([, i]) => arm[column][i]),
    unpaired,
  };
}

const LENGTH_BANDS: readonly (readonly [title: string, below: number])[] = [
  ["prompts up to 1,000 tokens", 1001],
  ["1,001 to 4,000", 4001],
  ["4,001 to 8,000", 8001],
  ["8,001 to 16,000", 16001],
  ["above 16,000", Infinity],
];

function bandOf(promptTokens: number): string {
  return LENGTH_BANDS.find(([, below]) => promptTokens < below)?.[0] ?? LENGTH_BANDS[LENGTH_BANDS.length - 1][0];
}

function bandsOf(pairs: readonly RunPairs[]): PairedBand[] {
  const differences = new Map<string, number[]>();
  const add = (title: string, difference: number): void => {
    const list = differences.get(title);
    if (list === undefined) differences.set(title, [difference]);
    else list.push(difference);
  };
  for (const { baseline, arm, rows } of pairs) {
    for (const [i, j] of rows) {
      const difference = arm.ttftMs[j] - baseline.ttftMs[i];
      if (Number.isNaN(difference)) continue;
      add(bandOf(baseline.promptTokens[i]), difference);
      add(baseline.turn[i] === 0 ? "first turns" : "later turns", difference);
    }
  }
  const order = [...LENGTH_BANDS.map(([title]) => title), "first turns", "later turns"];
  return order.flatMap((title) => {
    const values = differences.get(title);
    if (values === undefined) return [];
    const sorted = Float64Array.from(values).sort();
    const median = (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
    return {
      title,
      pairs: values.length,
      faster: values.filter((value) => value < 0).length,
      slower: values.filter((value) => value > 0).length,
      medianMs: Number.isFinite(median) ? median : undefined,
    };
  });
}
