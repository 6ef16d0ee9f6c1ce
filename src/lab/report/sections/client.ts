import { type Block, list, type Section, table, text } from "../document.ts";
import { number, percent, whole } from "../format.ts";
import type { ReportModel } from "../model.ts";
import { levelTitle, type ReportCell } from "../cell.ts";
import { levelColumn } from "./levels.ts";

/** AIPerf flags 500 ms; a client that is later than this at its 99th percentile measured itself. */
const LATEST_MS = 50;

/** Whether the client kept its own schedule. */
export function clientSection(model: ReportModel): Section {
  const id = "client";
  const title = "Client health";
  const groups = model.groups.filter(({ cells }) => cells.every(({ scheduleLagMs }) => scheduleLagMs !== undefined));
  if (groups.length === 0) {
    return { id, title, blocks: [text("Needs a record of each request: how late the client sent is unknown.")] };
  }
  const column = levelColumn(model);
  const rows = groups.map(({ arm, level, cells, evidence }) => {
    const lags = cells.flatMap(({ scheduleLagMs }) => scheduleLagMs ?? []);
    const worst = (name: "p50" | "p95" | "p99"): number | undefined => {
      const values = lags.map((lag) => lag[name]);
      return values.some((value) => value === null) ? undefined : Math.max(...values.map((value) => value ?? 0));
    };
    return [
      column.of(level),
      arm,
      whole(lags.reduce((sum, { n }) => sum + n, 0)),
      number(worst("p50")),
      number(worst("p95")),
      number(worst("p99")),
      number(evidence === undefined ? undefined : largest(evidence.flatMap(({ columns }) => [...columns.lagMs]))),
    ];
  });
  const late = groups.flatMap(({ arm, level, cells }) =>
    cells.flatMap((cell) => {
      const why = whyLate(cell);
      const where = `${arm}, ${levelTitle(level)}, run ${cell.run}`;
      return why === undefined
        ? []
        : [`${where}: ${why}; it was the bottleneck, and this run says little of the server`];
    }),
  );
  const blocks: Block[] = [
    table(
      "How late requests were sent (ms), the worst run of each",
      [column.title, "<Arm", "n", "p50", "p95", "p99", "max"],
      rows,
    ),
    late.length === 0 ? text("The client kept its schedule in every run.") : list(late),
  ];
  const figures = groups.flatMap(({ arm, level, cells }) =>
    cells.flatMap(({ run, live: { client } }) =>
      client === undefined
        ? []
        : [
            [
              column.of(level),
              arm,
              String(run),
              number(client.scheduleLagP99Ms),
              number(client.loopDelayP99Ms),
              percent(client.loopUtilisation),
              client.verdict,
              client.reasons.join("; "),
            ],
          ],
    ),
  );
  if (figures.length > 0) {
    const columns = [
      column.title,
      "<Arm",
      "Run",
      "Lag p99 (ms)",
      "Loop delay p99 (ms)",
      "Loop busy",
      "<Verdict",
      "<Why",
    ];
    blocks.push(table("The client itself, run by run", columns, figures));
  }
  return { id, title, blocks };
}

/** Why the client of a run measured itself: by what it found of itself, or by how late it sent; undefined if it did not. */
function whyLate({ scheduleLagMs, live: { client } }: ReportCell): string | undefined {
  if (client?.verdict === "bottleneck") return `the client was too slow (${client.reasons.join("; ")})`;
  const statistic = (["p99", "p95"] as const).find((name) => typeof scheduleLagMs?.[name] === "number");
  if (statistic === undefined || (scheduleLagMs?.[statistic] ?? 0) <= LATEST_MS) return undefined;
  return `the client sent more than ${LATEST_MS} ms late at its ${statistic}`;
}

function largest(values: readonly number[]): number | undefined {
  let most: number | undefined;
  for (const value of values) if (!Number.isNaN(value) && value > (most ?? -Infinity)) most = value;
  return most;
}
