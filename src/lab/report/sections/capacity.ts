import { type Section, table, text } from "../document.ts";
import { ms, NOTHING } from "../format.ts";
import type { ReportModel } from "../model.ts";
import { limitsOf } from "../capacity.ts";
import { levelColumn } from "./levels.ts";

/** Up to which load each arm meets each limit. */
export function capacitySection(model: ReportModel): Section {
  const id = "capacity";
  const title = "Capacity under the SLO";
  if (Object.keys(model.slo).length === 0) {
    return { id, title, blocks: [text("No SLO is set; `--slo ttft=600,tpot=60` sets one.")] };
  }
  const column = levelColumn(model);
  const rows = model.capacities.map(({ arm, workers, limit, largest, firstMissed, levels }) => [
    limit.title,
    workers === undefined ? arm : `${arm}, ${workers} workers`,
    largest === undefined ? "none" : column.of(largest),
    firstMissed === undefined ? NOTHING : column.of(firstMissed),
    levels
      .map(
        ({ level, verdict, p95 }) => `${column.of(level)}: ${verdict === "unknown" ? "unknown" : verdict} (${ms(p95)})`,
      )
      .join(", "),
  ]);
  const isUneven = model.capacities.some(
    ({ levels }) =>
      levels.findIndex(({ verdict }) => verdict === "missed") <
        levels.findLastIndex(({ verdict }) => verdict === "met") && levels.some(({ verdict }) => verdict === "missed"),
  );
  return {
    id,
    title,
    blocks: [
      table(
        `Largest ${column.title.toLowerCase()} whose p95 over all offered requests is within the limit`,
        ["<Limit", "<Arm", "Largest that meets it", "Smallest that misses it", "<Each level, p95 in ms"],
        rows,
      ),
      ...(isUneven
        ? [
            text(
              "Where an arm misses a limit below its largest passing level, it passes there by chance or by warm caches: take the smaller number.",
            ),
          ]
        : []),
      ...(limitsOf(model.slo).length > 1
        ? [text("For all limits together the p95 shown is that of the first limit, or of the one that is missed.")]
        : []),
    ],
  };
}
