import { type Block, type Section, table, text } from "../document.ts";
import { duration, known, number, percent } from "../format.ts";
import type { ArmAtLevel } from "../groups.ts";
import { groupAt, type ReportModel } from "../model.ts";
import { levelColumn } from "./levels.ts";

/** How evenly work lay on the workers: study 2's table, and shares per worker. */
export function balanceSection(model: ReportModel): Section {
  const id = "balance";
  const title = "Balance";
  const groups = model.levels.flatMap((level) => model.arms.flatMap(({ name }) => groupAt(model, name, level) ?? []));
  if (groups.every((group) => group.spread === undefined && !model.balances.has(group))) {
    return {
      id,
      title,
      blocks: [
        text(
          "Needs to know which worker served each request; the sources do not say (AIPerf's `worker_id` is a process of the load generator).",
        ),
      ],
    };
  }
  const column = levelColumn(model);
  const blocks: Block[] = [
    table(
      "Spread, waiting and skew",
      [
        column.title,
        "<Arm",
        "In-flight spread, mean",
        "p95",
        "max",
        "Mean in-flight skew",
        "Longest wait spike",
        "Wait skew",
        "Worker TTFT max",
        "Turns that stayed",
      ],
      groups.map((group) => {
        const balance = model.balances.get(group);
        return [
          column.of(group.level),
          group.arm,
          number(group.spread?.mean, 1),
          number(group.spread?.p95, 0),
          number(group.spread?.max, 0),
          group.meanSkew === undefined ? number(undefined) : `${number(group.meanSkew, 2)} ×`,
          duration(balance?.waitSpikeMs),
          balance?.waitSkew === undefined ? number(undefined) : `${number(balance.waitSkew, 2)} ×`,
          duration(balance?.workerTtftMaxMs),
          percent(balance?.stickyShare),
        ];
      }),
    ),
  ];
  const crowded = groups.flatMap((group) => {
    const found = model.balances.get(group)?.crowded;
    if (found === undefined) return [];
    return [
      [column.of(group.level), group.arm, percent(found.share), number(found.ttftP95Ms), number(found.othersTtftP95Ms)],
    ];
  });
  if (crowded.length > 0) {
    blocks.push(
      table(
        `Requests placed on a worker with more than ${model.batchLimit} in flight, the size of its batch`,
        [column.title, "<Arm", "Share of requests", "Their TTFT p95 (ms)", "TTFT p95 of the others (ms)"],
        crowded,
      ),
    );
  }
  blocks.push(
    table(
      "Requests per worker, mean of runs",
      [column.title, "<Arm", "Largest share", "Smallest share", "<Shares, in-flight means"],
      groups.flatMap((group) => workerRow(group, column.of(group.level))),
    ),
    text(
      "Spread: most minus least in flight over the workers at one moment. Wait spike: largest mean wait of ten seconds on one worker, by the lower bound of the anatomy. " +
        "Skew: largest worker mean over the mean of all.",
    ),
  );
  return { id, title, blocks };
}

function workerRow({ arm, cells }: ArmAtLevel, level: string): string[][] {
  const names = cells[0].workers.map(({ worker }) => worker);
  const means = names.map((_, at) => ({
    share: meanKnown(cells.map(({ workers }) => known(workers[at]?.share))),
    inFlight: meanKnown(cells.map(({ workers }) => known(workers[at]?.inFlightMean))),
  }));
  const shares = means.flatMap(({ share }) => share ?? []);
  if (shares.length === 0) return [];
  const shown = means.slice(0, 8).map(({ share, inFlight }) => `${percent(share)} (${number(inFlight, 1)})`);
  const rest = means.length > 8 ? `, and ${means.length - 8} more` : "";
  return [[level, arm, percent(Math.max(...shares)), percent(Math.min(...shares)), shown.join(", ") + rest]];
}

function meanKnown(values: readonly (number | undefined)[]): number | undefined {
  const found = values.flatMap((value) => value ?? []);
  return found.length < values.length || found.length === 0
    ? undefined
    : found.reduce((sum, value) => sum + value, 0) / found.length;
}
