import { type Section, table, text } from "../document.ts";
import { NOTHING, number, signedPercent } from "../format.ts";
import type { LevelComparison } from "../comparisons.ts";
import { groupAt, type ReportModel } from "../model.ts";
import { throughputOf } from "../throughput-kind.ts";
import { withheld } from "../verdict.ts";
import { levelColumn } from "./levels.ts";

/** Served rates, with the offered load as denominator beside AIPerf's. */
export function throughputSection(model: ReportModel): Section {
  const column = levelColumn(model);
  const pairs = model.comparisons.map(({ arm, baseline, levels }) =>
    table(
      `Throughput, ${arm} beside ${baseline}`,
      [
        column.title,
        `${baseline} tokens/s`,
        `${arm} tokens/s`,
        "Improvement",
        `${baseline} requests/s`,
        `${arm} requests/s`,
      ],
      levels.map((level) => {
        const throughput = throughputOf(levels.flatMap(({ baseline: other, arm: own }) => [other, own]));
        const [x, y] = [throughput(level.baseline), throughput(level.arm)];
        const change =
          x.tokens === undefined || y.tokens === undefined || x.tokens === 0 ? undefined : y.tokens / x.tokens - 1;
        const why = whyWithheld(level);
        return [
          column.of(level.level),
          number(x.tokens, 1),
          number(y.tokens, 1),
          why === undefined ? signedPercent(change) : `${NOTHING}, ${why}`,
          number(x.requests, 2),
          number(y.requests, 2),
        ];
      }),
    ),
  );
  const rows = model.levels.flatMap((level) =>
    model.arms.flatMap(({ name }) => {
      const group = groupAt(model, name, level);
      if (group === undefined) return [];
      const { rates, tokens, accounting } = group;
      return [
        [
          column.of(level),
          name,
          number(rates.offeredPerSecond, 2),
          number(rates.requestsPerSecond, 2),
          number(rates.requestsPerSecondOverSpan, 2),
          number(rates.outputTokensPerSecond, 1),
          number(rates.outputTokensPerSecondOverSpan, 1),
          number(tokens.outputTotal === undefined ? undefined : tokens.outputTotal / accounting.offered, 1),
        ],
      ];
    }),
  );
  return {
    id: "throughput",
    title: "Throughput",
    blocks: [
      ...pairs,
      table(
        "Offered and served, means over runs",
        [
          column.title,
          "<Arm",
          "Offered/s",
          "Served/s in the window",
          "Served/s over the span",
          "Tokens/s in the window",
          "Tokens/s over the span",
          "Output tokens per offered request",
        ],
        rows,
      ),
      text(
        "The span is AIPerf's: from the first request to the last answer. It shrinks when requests are turned away, which hides the loss; tokens per offered request do not.",
      ),
    ],
  };
}

/** What is served in a window says who serves more past saturation too; the span does not, where work was turned away. */
function whyWithheld({ verdict, baseline, arm }: LevelComparison): string | undefined {
  const isOfWindow = [baseline, arm].every(({ rates }) => rates.outputTokensPerSecond !== undefined);
  return verdict.isPastSaturation === true && isOfWindow ? undefined : withheld(verdict);
}
