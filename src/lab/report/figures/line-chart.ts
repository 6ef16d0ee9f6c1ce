import { type Label, placeLabels } from "./labels.ts";
import { linearScale, logScale, pointScale, type Scale } from "./scale.ts";
import { dot, figure, line, n, path, text, widthOf } from "./svg.ts";

/** One line of a chart: a value at each place, Infinity where it was not reached, undefined where there is none. */
export interface Series {
  readonly name: string;
  readonly colour: number;
  readonly values: readonly (number | undefined)[];
}

export interface LineChart {
  readonly title: string;
  readonly xTitle: string;
  readonly yTitle: string;
  readonly x: readonly number[];
  readonly xLabels?: readonly string[];
  readonly series: readonly Series[];
  /** A line across, such as an SLO. */
  readonly limit?: { readonly value: number; readonly label: string } | undefined;
  /** A place between two levels to mark, with its label. */
  readonly marks?: readonly { readonly from: number; readonly to: number; readonly label: string }[];
  readonly isLogarithmic?: boolean;
  readonly fromZero?: boolean;
  shown(value: number): string;
}

const WIDTH = 820;
const HEIGHT = 400;
const TOP = 48;
const BOTTOM = 56;
const LEFT = 72;
/** Where values stand that were not reached: above everything that was. */
const BEYOND = 22;

/** A chart of lines with a name at the end of each. */
export function lineChart(chart: LineChart): string {
  const right = 24 + Math.max(...[...chart.series.map(({ name }) => name), chart.limit?.label ?? ""].map(widthOf));
  const [x0, x1, y0, y1] = [LEFT + 14, WIDTH - right - 14, HEIGHT - BOTTOM, TOP];
  const hasUnreached = chart.series.some(({ values }) => values.includes(Infinity));
  const finite = chart.series.flatMap(({ values }) =>
    values.flatMap((value) => (value === undefined || !Number.isFinite(value) ? [] : [value])),
  );
  const all = chart.limit === undefined ? finite : [...finite, chart.limit.value];
  if (all.length === 0) return "";
  const x = pointScale(chart.x, x0, x1);
  const top = hasUnreached ? y1 + BEYOND : y1;
  const y = yScale(chart, all, y0, top);
  const content = [
    text(LEFT, 22, chart.title, { kind: "t" }),
    ...axes(chart, x, y, { x0: LEFT, x1: WIDTH - right, y0, y1 }),
    ...marksOf(chart, x, y0, y1),
  ];
  const labels: Label[] = [];
  if (chart.limit !== undefined) {
    const at = y.at(chart.limit.value);
    content.push(line(LEFT, at, WIDTH - right, at, "limit"));
    labels.push({ text: chart.limit.label, wanted: at + 4, kind: "limit" });
  }
  if (hasUnreached) content.push(text(LEFT + 6, y1 + 4, "not reached", { kind: "q" }));
  for (const { name, colour, values } of chart.series) {
    const points = values.flatMap((value, at): [number, number][] =>
      value === undefined ? [] : [[x.at(chart.x[at]), value === Infinity ? y1 : y.at(value)]],
    );
    const last = points.at(-1);
    if (last === undefined) continue;
    content.push(path(points, `line s${colour}`), ...points.map(([px, py]) => dot(px, py, `f${colour}`)));
    labels.push({ text: name, wanted: last[1] + 4, kind: String(colour) });
  }
  for (const label of placeLabels(labels, y1 + 4, y0)) {
    const isLimit = label.kind === "limit";
    const leader = isLimit ? "limit" : `thin s${label.kind}`;
    content.push(
      line(WIDTH - right + 2, label.wanted - 4, WIDTH - right + 10, label.y - 4, leader),
      text(WIDTH - right + 13, label.y, label.text, { kind: isLimit ? "q" : `f${label.kind}` }),
    );
  }
  return figure(WIDTH, HEIGHT, chart.title, content);
}

function yScale(chart: LineChart, values: readonly number[], from: number, to: number): Scale {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  if (chart.isLogarithmic === true && low > 0) return logScale(low, high, from, to);
  return linearScale(chart.fromZero === false ? low : Math.min(0, low), high, from, to);
}

function axes(chart: LineChart, x: Scale, y: Scale, box: { x0: number; x1: number; y0: number; y1: number }): string[] {
  const lines = y.ticks.flatMap((tick) => [
    line(box.x0, y.at(tick), box.x1, y.at(tick), "grid"),
    text(box.x0 - 8, y.at(tick) + 4, chart.shown(tick), { anchor: "end", kind: "q" }),
  ]);
  let free = -Infinity;
  const marks = x.ticks.flatMap((tick, at) => {
    const label = chart.xLabels?.[at] ?? String(tick);
    const half = widthOf(label) / 2;
    // A mark whose label would run into the one before stays without.
    if (x.at(tick) - half < free + 6) return [line(x.at(tick), box.y0, x.at(tick), box.y0 + 4, "axis")];
    free = x.at(tick) + half;
    return [
      line(x.at(tick), box.y0, x.at(tick), box.y0 + 4, "axis"),
      text(x.at(tick), box.y0 + 18, label, { anchor: "middle", kind: "q" }),
    ];
  });
  return [
    ...lines,
    line(box.x0, box.y0, box.x1, box.y0, "axis"),
    ...marks,
    text((box.x0 + box.x1) / 2, box.y0 + 42, chart.xTitle, { anchor: "middle", kind: "q" }),
    text(16, (box.y0 + box.y1) / 2, chart.isLogarithmic === true ? `${chart.yTitle} (logarithmic)` : chart.yTitle, {
      anchor: "middle",
      kind: "q",
      rotate: -90,
    }),
  ];
}

function marksOf(chart: LineChart, x: Scale, y0: number, y1: number): string[] {
  return (chart.marks ?? []).flatMap(({ from, to, label }, at) => {
    const [a, b] = [x.at(from), x.at(to)];
    return [
      `<rect x="${n(a)}" y="${n(y1)}" width="${n(b - a)}" height="${n(y0 - y1)}" fill="var(--l)" opacity=".45"/>`,
      text((a + b) / 2, y0 - 8 - 15 * at, label, { anchor: "middle", kind: "q" }),
    ];
  });
}
