import { comparePublished } from "../../experiment/compare-published.ts";
import { levelName } from "../../experiment/metrics.ts";
import type { ArmComparison } from "../comparisons.ts";
import { type Block, type Section, table, text } from "../document.ts";
import { NOTHING, number, percent, signed, signedPercent } from "../format.ts";
import type { ReportModel } from "../model.ts";
import { levelColumn } from "./levels.ts";

/** What was expected beforehand beside what was observed. */
export function expectedSection(model: ReportModel): Section {
  const column = levelColumn(model);
  const blocks: Block[] = model.comparisons.flatMap((comparison) => {
    const rows = expectations(comparison, column.of);
    return rows.length === 0
      ? []
      : [table(`${comparison.arm} and ${comparison.baseline}`, ["<Expected", "<Observed", "<Holds"], rows)];
  });
  if (model.published !== undefined) {
    const { values, missing } = comparePublished(model.published, model.results);
    blocks.push(
      table(
        `${model.published.study}, and this run (latencies of completed requests)`,
        ["<Arm", "<Level", "<Metric", "Published", "Here", "Error"],
        values.map(({ arm, level, metric, published, simulated, error }) => {
          const factor = metric.kind === "share" ? 100 : 1;
          return [
            arm,
            levelName(level),
            metric.title + (metric.kind === "share" ? " (%)" : ""),
            number(factor * published, metric.decimals),
            number(simulated === undefined ? undefined : factor * simulated, metric.decimals),
            error === undefined ? NOTHING : `${signed(error, 1)} ${metric.kind === "share" ? "pp" : "%"}`,
          ];
        }),
      ),
    );
    if (missing.length > 0) blocks.push(text(`Published and not run here: ${missing.join(", ")}.`));
  }
  if (blocks.length === 0)
    blocks.push(text("Nothing was written down beforehand, and the sources do not say what could be expected."));
  return { id: "expected", title: "Expected and observed", blocks };
}

/** What the sweep's brief expects of any fleet: blind routing hits by accident, aware routing always, and the gap grows. */
function expectations(
  comparison: ArmComparison,
  levelOf: (level: ArmComparison["levels"][number]["level"]) => string,
): string[][] {
  const { levels, arm, baseline } = comparison;
  const rows: string[][] = [];
  for (const level of levels) {
    const { ceiling, observed } = level.baseline.cache;
    const workers = level.level.workers;
    if (observed !== undefined && workers !== undefined) {
      rows.push([
        `${levelOf(level.level)}: ${baseline} hits by accident, ${percent(1 / workers, 0)} (1/N)`,
        percent(observed),
        observed <= (1 / workers) * 1.25 ? "yes" : "no: shared prefixes are in every cache",
      ]);
    }
    const own = level.arm.cache.observed;
    if (own !== undefined && ceiling !== undefined) {
      rows.push([
        `${levelOf(level.level)}: ${arm} finds nearly all that a cache could hold, ${percent(ceiling)}`,
        percent(own),
        own >= 0.95 * ceiling ? "yes" : "no",
      ]);
    }
  }
  const gaps = levels.flatMap((level) => {
    const change = level.differences.find(({ metric }) => metric.name === "ttftP95Ms")?.change;
    return change === undefined || !Number.isFinite(change) ? [] : [{ at: levelOf(level.level), change }];
  });
  const [first, last] = [gaps[0], gaps.at(-1)];
  if (first !== undefined && last !== undefined && gaps.length > 1) {
    rows.push([
      "The gap in TTFT p95 grows with the load",
      `${signedPercent(first.change)} at ${first.at}, ${signedPercent(last.change)} at ${last.at}`,
      last.change < first.change ? "yes" : "no",
    ]);
  }
  return rows;
}
