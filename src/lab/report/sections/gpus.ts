import type { CellWorker } from "../../results/types.ts";
import { levelTitle } from "../cell.ts";
import type { LevelComparison } from "../comparisons.ts";
import { type Block, list, type Section, table, text } from "../document.ts";
import { gigabytes, known, NOTHING, number, percent, whole } from "../format.ts";
import type { ArmAtLevel } from "../groups.ts";
import { groupAt, type ReportModel } from "../model.ts";
import { middleOf } from "../reading.ts";
import { levelColumn } from "./levels.ts";

/** What the workers' own metrics and their GPUs say, which the client cannot see. */
export function gpusSection(model: ReportModel): Section {
  const id = "gpus";
  const title = "What the GPUs did";
  const groups = model.levels.flatMap((level) => model.arms.flatMap(({ name }) => groupAt(model, name, level) ?? []));
  const told = groups.filter(
    (group) => busyShares(group).length > 0 || group.cells.some(({ workers }) => workers.length > 0),
  );
  if (told.length === 0) {
    const why =
      "No source has metrics of the workers or their GPUs: nothing says whether an arm was quicker because it did less.";
    return { id, title, blocks: [text(why)] };
  }
  const column = levelColumn(model);
  const rows = told.map((group) => {
    const busy = busyShares(group);
    const workers = group.cells.flatMap((cell) => cell.workers);
    const evictions = totalOf(workers.map((worker) => known(worker.evictions)));
    return [
      column.of(group.level),
      group.arm,
      percent(mean(busy)),
      busy.length < 2 ? NOTHING : `${percent(Math.min(...busy))}–${percent(Math.max(...busy))}`,
      gigabytes(mean(memoryUsed(group))),
      percent(mean(workers.flatMap((worker) => known(worker.kvOccupancy) ?? []))),
      percent(most(workers.flatMap((worker) => known(worker.kvOccupancyMax) ?? []))),
      whole(evictions),
      whole(totalOf(workers.map((worker) => known(worker.preemptions)))),
      number(most(workers.flatMap((worker) => known(worker.queueMax) ?? [])), 0),
      percent(mean(workers.flatMap((worker) => known(worker.draftAcceptance) ?? []))),
      [evictions !== undefined && evictions > 0 ? "evictions" : "", restartsText(workers)].filter(Boolean).join(", "),
    ];
  });
  const blocks: Block[] = [
    table(
      "Over all workers and runs",
      [
        column.title,
        "<Arm",
        "Busy, mean",
        "Busy, least–most",
        "Memory used, mean",
        "KV occupancy, mean",
        "KV occupancy, max",
        "Evicted blocks",
        "Preemptions",
        "Queue, max",
        "Drafts accepted",
        "<Remark",
      ],
      rows,
    ),
    ...perWorker(told, column.of),
  ];
  const suspicions = model.comparisons.flatMap(({ levels }) => levels.flatMap(suspicionOf));
  if (suspicions.length > 0) blocks.push(list(suspicions));
  return { id, title, blocks };
}

function perWorker(groups: readonly ArmAtLevel[], levelOf: (level: ArmAtLevel["level"]) => string): Block[] {
  const rows = groups.flatMap((group) =>
    group.cells[0].workers.slice(0, 16).map((worker, at) => {
      const all = group.cells.flatMap(({ workers }) => workers[at] ?? []);
      return [
        levelOf(group.level),
        group.arm,
        worker.worker,
        percent(mean(all.flatMap(({ busyShare }) => known(busyShare) ?? []))),
        percent(mean(all.flatMap(({ share }) => known(share) ?? []))),
        number(mean(all.flatMap(({ inFlightMean }) => known(inFlightMean) ?? [])), 1),
        number(most(all.flatMap(({ inFlightMax }) => known(inFlightMax) ?? [])), 0),
        percent(mean(all.flatMap(({ kvOccupancy }) => known(kvOccupancy) ?? []))),
        whole(totalOf(all.map(({ evictions }) => known(evictions)))),
      ];
    }),
  );
  if (rows.length === 0) return [];
  const columns = [
    "Level",
    "<Arm",
    "<Worker",
    "Busy",
    "Share of requests",
    "In flight, mean",
    "In flight, max",
    "KV occupancy",
    "Evicted blocks",
  ];
  return [table("Worker by worker, means over runs", columns, rows)];
}

/** An arm that is quicker while its GPUs work less and it completes fewer has most likely done less. */
function suspicionOf({ baseline, arm, level }: LevelComparison): string[] {
  const [x, y] = [mean(busyShares(baseline)), mean(busyShares(arm))];
  const [p, q] = [baseline, arm].map(
    ({ latencies }) => middleOf(latencies.ttftMs.completed.p50) ?? middleOf(latencies.ttftMs.completed.mean),
  );
  const completed = ({ accounting }: ArmAtLevel): number => accounting.completed / Math.max(1, accounting.offered);
  if (x === undefined || y === undefined || p === undefined || q === undefined) return [];
  if (q >= p || y >= x || completed(arm) >= completed(baseline)) return [];
  return [
    `**${arm.arm}, ${levelTitle(level)}: faster while its GPUs work less (${percent(y)} busy against ${percent(x)}) and it completes fewer requests:** it did less, it is not quicker.`,
  ];
}

function memoryUsed({ cells }: ArmAtLevel): number[] {
  return cells.flatMap(({ workers, gpus }) => [
    ...workers.flatMap(({ sampled }) => known(sampled?.memoryUsedBytes) ?? []),
    ...gpus.flatMap(({ memoryUsedBytes }) => memoryUsedBytes ?? []),
  ]);
}

function restartsText(workers: readonly CellWorker[]): string {
  const restarts = totalOf(workers.map(({ sampled }) => known(sampled?.restarts)));
  return restarts === undefined || restarts === 0 ? "" : `${restarts} restarts`;
}

function busyShares({ cells }: ArmAtLevel): number[] {
  return cells.flatMap(({ workers, gpus }) => [
    ...workers.flatMap(({ busyShare }) => known(busyShare) ?? []),
    ...gpus.flatMap(({ busyShare }) => busyShare ?? []),
  ]);
}

function mean(values: readonly number[]): number | undefined {
  return values.length === 0 ? undefined : values.reduce((sum, value) => sum + value, 0) / values.length;
}

function most(values: readonly number[]): number | undefined {
  return values.length === 0 ? undefined : Math.max(...values);
}

function totalOf(values: readonly (number | undefined)[]): number | undefined {
  const found = values.flatMap((value) => value ?? []);
  return found.length === 0 ? undefined : found.reduce((sum, value) => sum + value, 0);
}
