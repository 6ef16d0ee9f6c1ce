import { ACCOUNTS } from "../../../core/accounts.ts";
import { type Block, type Section, table, text } from "../document.ts";
import { number, percent, signedPercent, whole } from "../format.ts";
import { type ArmAtLevel, promptMeans } from "../groups.ts";
import type { ReportModel } from "../model.ts";
import { levelColumn } from "./levels.ts";

const COMPLETED = ACCOUNTS.indexOf("completed");
const BANDS: readonly (readonly [title: string, below: number])[] = [
  ["up to 1,000 tokens", 1001],
  ["1,001 to 2,000", 2001],
  ["2,001 to 4,000", 4001],
  ["4,001 to 8,000", 8001],
  ["8,001 to 16,000", 16001],
  ["above 16,000", Infinity],
];

/** Who was turned away: an arm that sheds the harder requests is left with the easier ones. */
export function lostSection(model: ReportModel): Section {
  const id = "lost";
  const title = "Who was turned away";
  const groups = model.groups.filter(({ accounting }) => accounting.completed < accounting.offered);
  if (groups.length === 0) return { id, title, blocks: [text("Nobody: every offered request completed.")] };
  const column = levelColumn(model);
  const blocks: Block[] = [
    table(
      "Prompt length of what completed and what did not, means",
      [column.title, "<Arm", "Not completed", "Their prompts (tokens)", "Prompts of completed (tokens)", "Longer by"],
      groups.map(({ arm, level, accounting, tokens }) => [
        column.of(level),
        arm,
        whole(accounting.offered - accounting.completed),
        number(tokens.lostPromptMean, 0),
        number(tokens.completedPromptMean, 0),
        signedPercent(
          tokens.lostPromptMean === undefined || tokens.completedPromptMean === undefined
            ? undefined
            : tokens.lostPromptMean / tokens.completedPromptMean - 1,
        ),
      ]),
    ),
    table(
      "Each run: prompts of what did not complete, and of what did (tokens, mean)",
      [column.title, "<Arm", "Run", "Not completed", "Their prompts", "Prompts of completed"],
      groups.flatMap(({ arm, level, cells, evidence }) =>
        cells.map(({ run, accounting, tokens }, at) => {
          const own = evidence === undefined ? undefined : promptMeans([evidence[at]]);
          return [
            column.of(level),
            arm,
            String(run),
            whole(accounting.offered - accounting.completed),
            number(own?.lost ?? tokens.lostPromptMean, 0),
            number(own?.completed ?? tokens.completedPromptMean, 0),
          ];
        }),
      ),
    ),
  ];
  const known = groups.filter(({ evidence }) => evidence !== undefined);
  if (known.length === 0)
    blocks.push(text("By length and turn: needs a record of each request, which the sources do not have."));
  else {
    blocks.push(
      table(
        "Share that did not complete, by length and turn",
        [column.title, "<Arm", ...BANDS.map(([band]) => band), "First turns", "Later turns"],
        known.map((group) => [column.of(group.level), group.arm, ...lostShares(group).map((share) => percent(share))]),
      ),
    );
  }
  return { id, title, blocks };
}

function lostShares({ evidence }: ArmAtLevel): (number | undefined)[] {
  const counts = Array.from({ length: BANDS.length + 2 }, () => ({ all: 0, lost: 0 }));
  const add = (at: number, isLost: boolean): void => {
    counts[at].all += 1;
    if (isLost) counts[at].lost += 1;
  };
  for (const { columns } of evidence ?? []) {
    for (let i = 0; i < columns.length; i++) {
      const isLost = columns.account[i] !== COMPLETED;
      add(
        BANDS.findIndex(([, below]) => columns.promptTokens[i] < below),
        isLost,
      );
      add(BANDS.length + (columns.turn[i] === 0 ? 0 : 1), isLost);
    }
  }
  return counts.map(({ all, lost }) => (all === 0 ? undefined : lost / all));
}
