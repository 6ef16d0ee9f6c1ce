import { writeFile } from "node:fs/promises";
import { stringify } from "yaml";
import { REFERENCE, USUAL_CONDITIONS, suiteArms } from "../../../../lab/suite/arms.ts";
import { spreadCells } from "../../../../lab/suite/design.ts";
import type { Bench } from "../../../../lab/suite/plan.ts";
import { drawSettings, objectiveOf } from "../../../../lab/suite/tuning.ts";
import type { Suite, SuiteArm, SuiteCell, TunedRival, TuningConfig } from "../../../../lab/suite/types.ts";
import { scoreCells, type ScoringRequest } from "./score-cells.ts";

/** The search, and what is told of it while it runs. */
export interface TuningRequest extends Pick<ScoringRequest, "keys" | "journal" | "threads" | "signal"> {
  readonly suite: Suite;
  readonly tuning: TuningConfig;
  readonly benches: readonly Bench[];
  /** The file that is written. */
  readonly path: string;
  readonly say: (line: string) => void;
}

/** Share of the cells on which all settings are tried. */
const FIRST_ROUND = 1 / 3;

const HEADER = `# Written by \`warmpath run policy-suite --tune\`; docs/guides/policy-suite.md says how. Do not edit.
# score: mean over cells, and over p95 TTFT and mean E2E, of the logarithm of the ratio to round-robin; lower is better.
`;

/** Searches the best setting of every rival and writes them down; nothing is written if it is interrupted. */
export async function tuneRivals(request: TuningRequest): Promise<void> {
  const { suite, tuning, benches } = request;
  const present = new Set(benches.map(({ workload }) => workload.name));
  const cells = spreadCells(suite, suite.full, tuning.cells).filter(({ workload }) => present.has(workload));
  const tuned = [];
  for (const rival of tuning.rivals) {
    const found = await bestSetting(request, rival, cells);
    if (found === undefined) return;
    const { arm, score, defaultScore, settings } = found;
    request.say(`${rival.policy}: ${JSON.stringify(arm.parameters)}, score ${score} (default ${defaultScore})`);
    tuned.push({
      policy: rival.policy,
      parameters: { ...arm.parameters },
      found: { score, defaultScore, settings, cells: cells.length, seed: suite.seed },
    });
  }
  await writeFile(request.path, `${HEADER}${stringify({ tuned })}`);
  request.say(`written to ${request.path}`);
}

interface FoundSetting {
  readonly arm: SuiteArm;
  readonly score: number;
  readonly defaultScore: number;
  readonly settings: number;
}

/** All settings on a part of the cells, the best of them on all. */
async function bestSetting(
  request: TuningRequest,
  rival: TunedRival,
  cells: readonly SuiteCell[],
): Promise<FoundSetting | undefined> {
  const { suite, tuning } = request;
  const { settings, finalists } = tuning;
  const drawn = drawSettings(rival, settings, suite.seed);
  const first = await scoresOf(request, drawn, cells.slice(0, Math.ceil(cells.length * FIRST_ROUND)));
  if (first === undefined) return undefined;
  // The default stays in: a tuned rival must not be worse than the untuned one.
  const order = Array.from(drawn.keys()).sort((a, b) => first[a] - first[b]);
  const last = [...new Set([0, ...order.slice(0, finalists)])].map((at) => drawn[at]);
  const scores = await scoresOf(request, last, cells);
  if (scores === undefined) return undefined;
  const best = scores.indexOf(Math.min(...scores));
  const rounded = (score: number): number => Math.round(score * 1e4) / 1e4;
  return { arm: last[best], score: rounded(scores[best]), defaultScore: rounded(scores[0]), settings: drawn.length };
}

/** The objective of every arm; undefined if not all cells were finished. */
async function scoresOf(
  request: TuningRequest,
  arms: readonly SuiteArm[],
  cells: readonly SuiteCell[],
): Promise<number[] | undefined> {
  const { suite, tuning, benches, keys, journal, threads, signal } = request;
  const { runs, requests } = tuning;
  const [reference] = suiteArms(suite, [], { policies: [REFERENCE] });
  const size = { ...suite.full, runs, requests };
  const conditions = USUAL_CONDITIONS;
  const compared = { suite, size, benches, cells, arms: [reference, ...arms], conditions };
  const scored = await scoreCells({ ...compared, keys, journal, threads, signal });
  return scored.length < cells.length ? undefined : arms.map((_, at) => objectiveOf(scored, at + 1, 0));
}
