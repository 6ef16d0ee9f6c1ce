import { decide, workloadFactors } from "../decision-rule.ts";
import { type Block, type Section, table, text } from "../document.ts";
import { number, signedPercent } from "../format.ts";
import type { ReportModel } from "../model.ts";
import { levelColumn } from "./levels.ts";

/** The A/B guide's own rule, applied. */
export function decisionSection(model: ReportModel): Section {
  const column = levelColumn(model);
  const blocks: Block[] = model.comparisons.map((comparison) =>
    table(
      `${comparison.arm} against ${comparison.baseline}`,
      [
        column.title,
        "TTFT improvement, p50 or p95, the smaller",
        "<Other metrics worse",
        "Distance p50–p95, ratio",
        "<Conclusion",
      ],
      decide(comparison).map(({ level, improvement, worse, variance, conclusion }) => [
        column.of(level.level),
        signedPercent(improvement),
        worse.length === 0 ? "none" : worse.join(", "),
        number(variance, 2),
        conclusion,
      ]),
    ),
  );
  blocks.push(
    table(
      "Factors in this workload",
      ["<Factor", "<Value", "<Speaks"],
      workloadFactors(model.groups).map(({ factor, value, speaks }) => [
        factor,
        value,
        speaks === "for" || speaks === "against" ? `${speaks} cache-aware routing` : speaks,
      ]),
    ),
    text(
      "The guide's rule: beneficial if TTFT improves by more than 20 % and no other metric gets worse; plain routing is better below 10 % or where latency varies more. Over all offered requests.",
    ),
  );
  return { id: "decision", title: "Decision rule of the A/B guide", blocks };
}
