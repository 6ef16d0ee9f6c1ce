import { displayNumber, type TableColumn, tableLines, type TableRow } from "../../table.ts";
import type { Colours } from "../../terminal.ts";
import type { DecisionExplanation, ExplainedCandidate } from "./record.ts";

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
