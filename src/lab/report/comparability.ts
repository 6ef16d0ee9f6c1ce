import { levelTitle } from "./cell.ts";
import type { ArmAtLevel } from "./groups.ts";
import { differingSettings, type Settings } from "./settings.ts";

/** Why two arms cannot be held against each other; `code` is stable. */
export interface Obstacle {
  readonly code:
    | "missing-arm"
    | "nothing-completed"
    | "two-variables"
    | "unequal-workers"
    | "different-load"
    | "different-prompts"
    | "saturation"
    | "undeclared-difference"
    | "failed-check";
  readonly why: string;
}

/** An open load must have begun as many requests or conversations in both arms, to this share. */
const OFFERED_TOLERANCE = 0.01;
/** Prompts of the same requests are equal; in a closed loop the window cuts other turns, which moves their mean a little. */
const PROMPT_TOLERANCE = { open: 0.01, closed: 0.1 };

/** What stands in the way of comparing two arms at a level, gravest first. */
export function obstacles(
  baseline: ArmAtLevel,
  arm: ArmAtLevel,
  settings: { readonly baseline: Settings | undefined; readonly arm: Settings | undefined },
  undeclared: readonly string[] = [],
): Obstacle[] {
  const found: Obstacle[] = [];
  const add = (code: Obstacle["code"], why: string): void => void found.push({ code, why });
  for (const group of [baseline, arm]) {
    const { offered, completed } = group.accounting;
    if (completed === 0) add("nothing-completed", `${group.arm} completed none of its ${offered} requests`);
  }
  const names = variablesBetween(settings.baseline, settings.arm);
  if (names.length > 1) add("two-variables", `more than one thing differs between the arms: ${names.join(", ")}`);
  for (const why of undeclared) add("undeclared-difference", why);
  if (!arePromptsEqual(baseline, arm))
    add("different-prompts", "the arms were sent different prompts: their digests differ");
  if (baseline.level.workers !== arm.level.workers) {
    const counts = `${baseline.level.workers ?? "unknown"} and ${arm.level.workers ?? "unknown"}`;
    add("unequal-workers", `the arms had different numbers of workers: ${counts}`);
  }
  const reporting = [reportingWorkers(baseline), reportingWorkers(arm)];
  if (reporting[0] !== undefined && reporting[1] !== undefined && reporting[0] !== reporting[1]) {
    add("unequal-workers", `${reporting[0]} workers served ${baseline.arm} and ${reporting[1]} served ${arm.arm}`);
  }
  found.push(...loadObstacles(baseline, arm));
  if ((baseline.saturatedRuns ?? 0) > 0 && (arm.saturatedRuns ?? 0) > 0) {
    const level = levelTitle(arm.level);
    add("saturation", `both arms are past saturation at ${level}, where a latency depends on how long one looks`);
  }
  return found;
}

/** The settings that differ, the number of workers aside, which is a matter of its own. */
export function variablesBetween(baseline: Settings | undefined, arm: Settings | undefined): string[] {
  return baseline === undefined || arm === undefined ? [] : differingSettings(baseline, arm);
}

/**
 * By the digests of what was sent, run by run. A closed loop gets to other requests in each arm, and conversations to
 * other turns, which proves nothing.
 */
function arePromptsEqual(baseline: ArmAtLevel, arm: ArmAtLevel): boolean {
  if (arm.level.concurrency !== undefined || hasFollowUps(baseline) || hasFollowUps(arm)) return true;
  return baseline.cells.every(({ run, live }) => {
    const other = arm.cells.find((cell) => cell.run === run)?.live.prompts;
    return live.prompts === undefined || other === undefined || live.prompts.digest === other.digest;
  });
}

function loadObstacles(baseline: ArmAtLevel, arm: ArmAtLevel): Obstacle[] {
  const isClosed = arm.level.concurrency !== undefined;
  const found: Obstacle[] = [];
  // A turn follows the answer before it, so the faster arm gets to more of them; the load's own are the first turns.
  const isKnown = baseline.evidence !== undefined && arm.evidence !== undefined;
  const isBegun = !isClosed && isKnown && (hasFollowUps(baseline) || hasFollowUps(arm));
  const loads = [baseline, arm].map(isBegun ? firstTurns : allRequests);
  const [x, y] = loads;
  if (!isClosed && isApart(x.perRun, y.perRun, OFFERED_TOLERANCE)) {
    const counts = loads.map(({ perRun }) => Math.round(perRun).toLocaleString("en-US")).join(" and ");
    const what = isBegun ? "conversations begun" : "requests";
    found.push({ code: "different-load", why: `the arms were offered different loads: ${counts} ${what} per run` });
  }
  const tolerance = isClosed ? PROMPT_TOLERANCE.closed : PROMPT_TOLERANCE.open;
  if (x.promptMean !== undefined && y.promptMean !== undefined && isApart(x.promptMean, y.promptMean, tolerance)) {
    const means = loads.map(({ promptMean }) => Math.round(promptMean ?? 0).toLocaleString("en-US")).join(" and ");
    const where = isBegun ? " in first turns" : "";
    found.push({
      code: "different-prompts",
      why: `the arms got different prompts: ${means} tokens on average${where}`,
    });
  }
  return found;
}

/** Whether requests of a window continue a conversation; false where there are no records to say so. */
function hasFollowUps({ evidence = [] }: ArmAtLevel): boolean {
  return evidence.some(({ columns }) => columns.turn.some((turn) => turn > 0));
}

/** What an arm was offered per run, and the mean of the prompts. */
interface OfferedLoad {
  readonly perRun: number;
  readonly promptMean: number | undefined;
}

function allRequests({ accounting, cells, tokens }: ArmAtLevel): OfferedLoad {
  return { perRun: accounting.offered / cells.length, promptMean: tokens.promptMean };
}

function firstTurns({ evidence = [] }: ArmAtLevel): OfferedLoad {
  let count = 0;
  let promptTokens = 0;
  for (const { columns } of evidence) {
    for (let i = 0; i < columns.length; i++) {
      if (columns.turn[i] > 0) continue;
      count += 1;
      promptTokens += columns.promptTokens[i];
    }
  }
  return { perRun: count / evidence.length, promptMean: count === 0 ? undefined : promptTokens / count };
}

/** Workers that got any request; undefined where nobody says. */
function reportingWorkers({ cells }: ArmAtLevel): number | undefined {
  const counts = cells.map(({ workers }) => (workers.length === 0 ? undefined : workers.length));
  return counts.some((count) => count === undefined) ? undefined : Math.min(...counts.map((count) => count ?? 0));
}

function isApart(a: number, b: number, tolerance: number): boolean {
  return Math.abs(a - b) > tolerance * Math.max(a, b);
}
