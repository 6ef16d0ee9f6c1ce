import {
  PUBLISHED_INPUT_P95,
  PUBLISHED_OUTPUT_MEAN,
  PUBLISHED_TURNS,
  type PublishedTurn,
  type TurnProfile,
} from "../../../workload/conversation/turn-profile.ts";
import { type TableColumn, tableLines } from "../../table.ts";
import type { Colours } from "../../terminal.ts";

/** What the H200 study says of its lengths. */
export interface PublishedProfile {
  readonly turns: readonly PublishedTurn[];
  readonly inputP95: number;
  readonly outputMean: number;
}

/** The published lengths in the shape of a generated profile. */
export function publishedProfile(): PublishedProfile {
  return { turns: PUBLISHED_TURNS, inputP95: PUBLISHED_INPUT_P95, outputMean: PUBLISHED_OUTPUT_MEAN };
}

/** Generated lengths by turn, beside the published ones where there are any. */
export function profileLines(profile: TurnProfile, published: PublishedProfile | null, colours: Colours): string[] {
  const names = ["turn", "requests", "input mean", "input p50", "output mean"];
  const titles = published === null ? names : [...names, "published input", "error p50", "published output"];
  const columns: TableColumn[] = titles.map((title) => ({ title, align: "right" }));
  const rows = profile.turns.map(({ turn, requests, inputMean, inputP50, outputMean }) => {
    const cells = [turn, requests, inputMean, inputP50, outputMean].map(whole);
    if (published === null) return { cells };
    const known = published.turns.find((one) => one.turn === turn);
    if (known === undefined) return { cells: [...cells, "–", "–", "–"] };
    return {
      cells: [...cells, whole(known.inputTokens), error(inputP50, known.inputTokens), whole(known.outputTokens)],
    };
  });
  const beside = (value: number, of: number | undefined): string =>
    of === undefined ? whole(value) : `${whole(value)} (published about ${whole(of)}, ${error(value, of)})`;
  return [
    ...tableLines(columns, rows, colours),
    "",
    `input p50 over all requests    ${whole(profile.inputP50)}`,
    `input p95 over all requests    ${beside(profile.inputP95, published?.inputP95)}`,
    `output mean over all requests  ${beside(profile.outputMean, published?.outputMean)}`,
  ];
}

function error(value: number, published: number): string {
  const percent = (100 * (value - published)) / published;
  return `${percent < 0 ? "−" : "+"}${Math.abs(percent).toFixed(1)} %`;
}

function whole(value: number): string {
  return Math.round(value).toLocaleString("en-US");
}
