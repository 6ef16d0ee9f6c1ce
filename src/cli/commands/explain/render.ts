import { NS_PER_MS, type Nanoseconds } from "../../../core/clock.ts";
import { displayNumber, type TableColumn, tableLines, type TableRow } from "../../table.ts";
import type { Colours } from "../../terminal.ts";
import type { DecisionExplanation, ExplainedCandidate } from "./record.ts";
import type { ReplayedRequest } from "./replay.ts";

const CHOSEN_MARK = "◀ chosen";

/** The explanation for people: what was asked, a line per candidate, and why the choice fell. `shownParameters` are the knobs worth a place. */
export function explanationLines(
  explanation: DecisionExplanation,
  shownParameters: readonly string[],
  colours: Colours,
): string[] {
  const { policy, parameters, request, candidates } = explanation;
  const title = [policy, ...shownParameters.map((name) => `${name}=${parameters[name]}`)].join("  ");
  const prompt = `${request.promptBlocks} blocks of ${request.blockTokens} tokens`;
  const terms = termNames(candidates);
  const columns: TableColumn[] = [
    { title: "worker", align: "left" },
    ...["cached", "to prefill", "decode blocks", ...terms, "cost"].map((name) => ({
      title: name,
      align: "right" as const,
    })),
    { title: "", align: "left" },
  ];
  const rows = candidates.map((candidate): TableRow => {
    const highlighted = candidate.worker === explanation.chosen;
    const values = [candidate.cachedBlocks, candidate.prefillBlocks, candidate.decodeBlocks];
    const cells = [
      candidate.worker,
      ...values.map(displayNumber),
      ...terms.map((name) => termCell(candidate, name)),
      displayNumber(candidate.cost),
      highlighted ? CHOSEN_MARK : "",
    ];
    return { cells, highlighted };
  });
  return [
    `policy  ${colours.bold(title)}`,
    `prompt  ${prompt}`,
    "",
    ...tableLines(columns, rows, colours),
    "",
    `rule    ${explanation.rule}`,
    ...verdictLines(explanation, colours),
  ];
}

function verdictLines({ chosen, runnerUp, margin, tied, unit }: DecisionExplanation, colours: Colours): string[] {
  if (chosen === null) return ["chosen  nobody: the policy placed the request nowhere"];
  const tie = tied > 1 ? `  (${tied} candidates tied)` : "";
  const lines = [`chosen  ${colours.green(chosen)}${tie}`];
  if (runnerUp === null || margin === null) return [...lines, "margin  none: there was no other candidate"];
  if (margin === 0) return [...lines, `margin  none: as cheap as the runner-up, ${runnerUp}`];
  return [...lines, `margin  ${displayNumber(margin)} ${unit} before the runner-up, ${runnerUp}`];
}

/** Every term any candidate has, in the order in which they first occur. */
function termNames(candidates: readonly ExplainedCandidate[]): string[] {
  return [...new Set(candidates.flatMap((candidate) => candidate.terms.map((term) => term.name)))];
}

function termCell(candidate: ExplainedCandidate, name: string): string {
  const term = candidate.terms.find((each) => each.name === name);
  return term === undefined ? "–" : displayNumber(term.value);
}

/** What became of a replayed request, above the table of one of its attempts. */
export function requestLines({ cell, record, attempts }: ReplayedRequest, at: number): string[] {
  const { attempt, decidedNs, queueWaitNs, filtered, refusal, predictedCachedTokens } = attempts[at];
  const turn = record.session === undefined ? "" : `, turn ${record.turn + 1} of ${record.session}`;
  const tried = attempts.length > 1 ? `, attempt ${attempt} of ${attempts.length}` : "";
  const waited = queueWaitNs > 0 ? `, after ${milliseconds(queueWaitNs)} in the queue` : "";
  const left = [
    ...filtered.notReady.map((worker) => `${worker} (not ready)`),
    ...filtered.tried.map((worker) => `${worker} (tried before)`),
    ...filtered.busy.map((worker) => `${worker} (busy)`),
  ];
  const found = `${displayNumber(predictedCachedTokens)} tokens foreseen, ${foundTokens(record.observedCachedTokens)} found`;
  const { firstContentNs, intendedNs, account } = record;
  const first = firstContentNs === undefined ? "none" : `after ${milliseconds(firstContentNs - intendedNs)}`;
  return [
    `request ${record.id}${turn}, in ${cell}${tried}`,
    `decided ${milliseconds(decidedNs - intendedNs)} after it was sent${waited}`,
    ...(left.length > 0 ? [`no candidates: ${left.join(", ")}`] : []),
    ...(refusal === null ? [`cached  ${found}; first token ${first}; ${account}`] : [`refused ${refusal.message}`]),
  ];
}

function milliseconds(ns: Nanoseconds): string {
  return `${displayNumber(Math.round(ns / NS_PER_MS))} ms`;
}

function foundTokens(tokens: number | string): string {
  return typeof tokens === "number" ? displayNumber(tokens) : tokens;
}
