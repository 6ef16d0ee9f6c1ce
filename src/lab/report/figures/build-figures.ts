import { compareLevels, levelTitle, loadKey, type ReportLevel } from "../cell.ts";
import { crossoversIn, rowsOf } from "../crossover.ts";
import type { FigureBlock } from "../document.ts";
import { known } from "../format.ts";
import { type ArmAtLevel, sampleOf } from "../groups.ts";
import { groupAt, type ReportModel } from "../model.ts";
import { middleOf, type Reading } from "../reading.ts";
import { throughputOf } from "../throughput-kind.ts";
import { type EcdfCurve, ecdfChart } from "./ecdf.ts";
import { type LineChart, lineChart } from "./line-chart.ts";
import { heatMap, inFlightChart } from "./panels.ts";
import { COLOURS } from "./svg.ts";

/** Figures by the section they belong to. */
export function buildFigures(model: ReportModel): ReadonlyMap<string, readonly FigureBlock[]> {
  const axes = axesOf(model);
  const throughput = throughputOf(model.groups);
  const tokensPerSecond = (group: ArmAtLevel): number | undefined => throughput(group).tokens;
  return new Map([
    ["ttft", [...axes.flatMap((axis) => ttftFigures(model, axis)), ...ecdfFigures(model)]],
    [
      "throughput",
      axes.flatMap((axis) =>
        valueFigure(model, axis, "throughput", "Output tokens per second", tokensPerSecond, thousands),
      ),
    ],
    [
      "cache",
      axes.flatMap((axis) =>
        valueFigure(model, axis, "hit-rate", "Prompt tokens found in a cache", hitShare, percents),
      ),
    ],
    ["balance", [...inFlightFigure(model), ...heatFigure(model)]],
  ]);
}

/** Levels in a row along one axis: rising load on one fleet, or more workers under one load. */
interface Axis {
  readonly kind: "load" | "workers";
  readonly name: string;
  readonly title: string;
  readonly levels: readonly ReportLevel[];
}

const MOST_AXES = 3;

function axesOf({ levels }: ReportModel): Axis[] {
  const group = (kind: Axis["kind"], keyOf: (level: ReportLevel) => string): Axis[] => {
    const groups = new Map<string, ReportLevel[]>();
    for (const level of levels) groups.set(keyOf(level), [...(groups.get(keyOf(level)) ?? []), level]);
    return [...groups.values()]
      .filter((row) => row.length > 1 && row.every((level) => xOf(kind, level) !== undefined))
      .map((row, at) => ({
        kind,
        name: `${kind}-${at + 1}`,
        title: kind === "workers" ? "workers" : loadTitle(row[0]),
        levels: row.toSorted(compareLevels),
      }));
  };
  return [...group("load", ({ workers }) => String(workers)), ...group("workers", loadKey)].slice(0, MOST_AXES);
}

function xOf(kind: Axis["kind"], level: ReportLevel): number | undefined {
  return kind === "workers" ? level.workers : (level.concurrency ?? level.rateRps ?? level.speed);
}

function loadTitle({ concurrency, rateRps }: ReportLevel): string {
  if (concurrency !== undefined) return "concurrent conversations";
  return rateRps === undefined ? "speed of the trace" : "requests per second offered";
}

function ttftFigures(model: ReportModel, axis: Axis): FigureBlock[] {
  return (["p50", "p95"] as const).flatMap((statistic) => {
    const title = `TTFT ${statistic} over all offered requests`;
    const limit = statistic === "p95" ? model.slo.ttftMs : undefined;
    return chartOf(model, axis, `ttft-${statistic}`, title, {
      yTitle: "ms",
      valueOf: (group) => ofReading(group.latencies.ttftMs.offered[statistic]),
      shown: thousands,
      limit: limit === undefined ? undefined : { value: limit, label: `SLO ${limit} ms` },
      isLogarithmic: true,
      marks: marksOf(model, axis, statistic === "p50" ? "ttftP50Ms" : "ttftP95Ms"),
    });
  });
}

interface ChartDetails {
  readonly yTitle: string;
  readonly valueOf: (group: ArmAtLevel) => number | undefined;
  readonly shown: (value: number) => string;
  readonly limit?: LineChart["limit"];
  readonly isLogarithmic?: boolean;
  readonly marks?: LineChart["marks"];
}

function chartOf(model: ReportModel, axis: Axis, name: string, title: string, details: ChartDetails): FigureBlock[] {
  const fleet = axis.kind === "load" ? axis.levels[0].workers : undefined;
  const full = fleet === undefined ? title : `${title}, ${fleet} workers`;
  const svg = lineChart({
    title: full,
    xTitle: axis.title,
    yTitle: details.yTitle,
    x: axis.levels.map((level) => xOf(axis.kind, level) ?? 0),
    series: model.arms.map((arm, at) => ({
      name: arm.name,
      colour: at % COLOURS,
      values: axis.levels.map((level) => {
        const group = groupAt(model, arm.name, level);
        return group === undefined ? undefined : details.valueOf(group);
      }),
    })),
    limit: details.limit,
    ...(details.marks === undefined ? {} : { marks: details.marks }),
    isLogarithmic: details.isLogarithmic ?? false,
    fromZero: details.isLogarithmic !== true,
    shown: details.shown,
  });
  return svg === "" ? [] : [{ kind: "figure", name: `${name}-by-${axis.name}`, title: full, svg }];
}

/** Where arms change sides with the baseline. */
function marksOf(model: ReportModel, axis: Axis, metric: string): NonNullable<LineChart["marks"]> {
  return model.comparisons.flatMap(({ arm, levels }) =>
    rowsOf(levels)
      .filter(
        (row) =>
          row.axis === axis.kind && row.levels.every(({ level }) => axis.levels.some((one) => sameLevel(one, level))),
      )
      .flatMap(crossoversIn)
      .filter((crossover) => crossover.metric === metric)
      .map(({ from, to }) => ({
        from: xOf(axis.kind, from) ?? 0,
        to: xOf(axis.kind, to) ?? 0,
        label: `${arm} changes sides`,
      })),
  );
}

function sameLevel(a: ReportLevel, b: ReportLevel): boolean {
  return compareLevels(a, b) === 0;
}

function valueFigure(
  model: ReportModel,
  axis: Axis,
  name: string,
  title: string,
  valueOf: (group: ArmAtLevel) => number | undefined,
  shown: (value: number) => string,
): FigureBlock[] {
  return chartOf(model, axis, name, title, { yTitle: "", valueOf, shown });
}

/** The distribution at the lightest and at the heaviest level, with what never got a first token. */
function ecdfFigures(model: ReportModel): FigureBlock[] {
  const { levels } = model;
  const chosen = levels.length > 1 ? [levels[0], levels[levels.length - 1]] : levels;
  return chosen.flatMap((level, at): FigureBlock[] => {
    const curves = model.arms.flatMap((arm, colour) => {
      const group = groupAt(model, arm.name, level);
      return group === undefined ? [] : curvesOf(group, colour % COLOURS);
    });
    const title = `TTFT of all offered requests: ${levelTitle(level)}`;
    const svg = ecdfChart(title, curves, (ms) => (ms >= 1000 ? `${ms / 1000} s` : `${ms} ms`));
    return svg === "" ? [] : [{ kind: "figure", name: `ttft-distribution-${at + 1}`, title, svg }];
  });
}

const CURVE_POINTS = 200;

function curvesOf(group: ArmAtLevel, colour: number): EcdfCurve[] {
  const { offered, completed } = group.accounting;
  if (offered === 0 || completed === 0) return [];
  if (group.evidence === undefined) {
    return group.cells.map((cell, at) => {
      const share = cell.accounting.completed / Math.max(1, cell.accounting.offered);
      return {
        name: group.cells.length > 1 ? `${group.arm} run ${at + 1}` : group.arm,
        colour,
        points: cell.latencies.ttftMs.points.points.map(([below, value]) => [value, below * share] as const),
        completedShare: share,
      };
    });
  }
  const sorted = sampleOf(group.evidence, ({ ttftMs }) => ttftMs).sorted();
  const points = Array.from({ length: CURVE_POINTS + 1 }, (_, i) => {
    const at = Math.round((i / CURVE_POINTS) * (sorted.length - 1));
    return [sorted[at], (at + 1) / offered] as const;
  });
  return [{ name: group.arm, colour, points, completedShare: completed / offered }];
}

const MOST_PANELS = 4;

/** The heaviest level at which workers are known, one run of each arm. */
function inFlightFigure(model: ReportModel): FigureBlock[] {
  const level = model.levels.findLast((one) =>
    model.arms.some((arm) => groupAt(model, arm.name, one)?.evidence?.[0].timeline !== undefined),
  );
  if (level === undefined) return [];
  const panels = model.arms.slice(0, MOST_PANELS).flatMap((arm) => {
    const timeline = groupAt(model, arm.name, level)?.evidence?.[0].timeline;
    return timeline === undefined ? [] : [{ title: arm.name, ...timeline }];
  });
  const title = `Requests in flight on each worker: ${levelTitle(level)}, first run`;
  return [{ kind: "figure", name: "in-flight", title, svg: inFlightChart(title, panels, model.batchLimit) }];
}

function heatFigure(model: ReportModel): FigureBlock[] {
  const workers = Math.max(0, ...model.groups.map(({ cells }) => cells[0].workers.length));
  const levels = model.levels.filter((level) => level.workers === model.levels.at(-1)?.workers);
  if (workers === 0 || levels.length === 0) return [];
  const panels = model.arms.slice(0, MOST_PANELS).flatMap((arm) => {
    const groups = levels.map((level) => groupAt(model, arm.name, level));
    const names = groups.find((group) => group !== undefined)?.cells[0].workers.map(({ worker }) => worker) ?? [];
    if (names.length === 0) return [];
    return [
      {
        title: arm.name,
        rows: names,
        columns: levels.map((level) => String(xOf("load", level) ?? "")),
        values: names.map((_, worker) => groups.map((group) => inFlightMean(group, worker))),
      },
    ];
  });
  const title = "Mean requests in flight, workers × load";
  const svg = panels.length === 0 ? "" : heatMap(title, panels, (value) => value.toFixed(value < 10 ? 1 : 0));
  return svg === "" ? [] : [{ kind: "figure", name: "heat-map", title, svg }];
}

function inFlightMean(group: ArmAtLevel | undefined, worker: number): number | undefined {
  const values = group?.cells.flatMap(({ workers }) => known(workers[worker]?.inFlightMean) ?? []) ?? [];
  return values.length === 0 ? undefined : values.reduce((sum, value) => sum + value, 0) / values.length;
}

function hitShare({ cache }: ArmAtLevel): number | undefined {
  return cache.observed;
}

function ofReading(reading: Reading): number | undefined {
  return reading.state === "not-reached" ? Infinity : middleOf(reading);
}

function thousands(value: number): string {
  return value.toLocaleString("en-US");
}

function percents(value: number): string {
  return `${Math.round(100 * value)} %`;
}
