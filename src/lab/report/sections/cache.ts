import { type Block, type Section, table, text } from "../document.ts";
import { percent, points } from "../format.ts";
import { groupAt, type ReportModel } from "../model.ts";
import type { ArmAtLevel } from "../groups.ts";
import { levelColumn } from "./levels.ts";

/** Shares of prompt tokens from a cache: what was possible, expected and found. */
export function cacheSection(model: ReportModel): Section {
  const id = "cache";
  const title = "Cache hit rates";
  if (model.groups.every(({ cache }) => cache.observed === undefined && cache.predicted === undefined)) {
    const why =
      "No source says how many prompt tokens came from a cache (`usage.prompt_tokens_details` or `usage_prompt_cache_read_tokens`).";
    return { id, title, blocks: [text(why)] };
  }
  const column = levelColumn(model);
  const rows = model.levels.flatMap((level) =>
    model.arms.flatMap(({ name }) => {
      const group = groupAt(model, name, level);
      if (group === undefined) return [];
      const { ceiling, predicted, observed } = group.cache;
      const accidental = level.workers === undefined ? undefined : 1 / level.workers;
      return [
        [
          column.of(level),
          name,
          percent(ceiling),
          percent(predicted),
          percent(observed),
          points(difference(observed, predicted)),
          points(difference(observed, ceiling)),
          percent(accidental),
        ],
      ];
    }),
  );
  const blocks: Block[] = model.comparisons.map(({ arm, baseline, levels }) =>
    table(
      `Hit rate, ${arm} beside ${baseline}`,
      [column.title, `${arm} hit rate`, `${baseline} hit rate`, "Difference"],
      levels.map((level) => [
        column.of(level.level),
        percent(level.arm.cache.observed),
        percent(level.baseline.cache.observed),
        points(difference(level.arm.cache.observed, level.baseline.cache.observed)),
      ]),
    ),
  );
  blocks.push(
    table(
      "Ceiling, predicted and observed",
      [
        column.title,
        "<Arm",
        "Ceiling",
        "Predicted",
        "Observed",
        "Observed − predicted",
        "Observed − ceiling",
        "Accidental share 1/N",
      ],
      rows,
    ),
    ...byTurn(model),
    text(
      "Ceiling: one cache that never forgets. Predicted: what the router expected when it placed the request. Observed: what the engine found. 1/N is the chance that a blind " +
        "choice goes back to where a conversation was; prefixes that many share make the observed share larger.",
    ),
  );
  return { id, title, blocks };
}

function byTurn(model: ReportModel): Block[] {
  const rows = model.arms.flatMap(({ name }) => {
    const groups = model.groups.filter(({ arm, evidence }) => arm === name && evidence !== undefined);
    const shares = Array.from({ length: 5 }, (_, turn) => turnShare(groups, turn));
    return shares.every((share) => share === undefined) ? [] : [[name, ...shares.map((share) => percent(share))]];
  });
  if (rows.length === 0) return [];
  return [
    table(
      "Observed by turn, all levels together",
      ["<Arm", "Turn 1", "Turn 2", "Turn 3", "Turn 4", "Turn 5 and later"],
      rows,
    ),
  ];
}

function turnShare(groups: readonly ArmAtLevel[], turn: number): number | undefined {
  let cached = 0;
  let prompt = 0;
  for (const { columns } of groups.flatMap(({ evidence }) => evidence ?? [])) {
    for (let i = 0; i < columns.length; i++) {
      if (Math.min(4, columns.turn[i]) !== turn || Number.isNaN(columns.cachedTokens[i])) continue;
      cached += columns.cachedTokens[i];
      prompt += columns.promptTokens[i];
    }
  }
  return prompt === 0 ? undefined : cached / prompt;
}

function difference(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? undefined : a - b;
}
