import { type Label, placeLabels } from "./labels.ts";
import { linearScale, logScale } from "./scale.ts";
import { figure, line, n, path, text, widthOf } from "./svg.ts";

/** A curve: values with the share of offered requests that had them or less, ascending. */
export interface EcdfCurve {
  readonly name: string;
  readonly colour: number;
  readonly points: readonly (readonly [value: number, share: number])[];
  /** Share of offered requests that completed: where the curve ends. */
  readonly completedShare: number;
}

/** Below this share some requests did not complete that a figure can show. */
const ALL = 0.9995;
const WIDTH = 820;
const HEIGHT = 400;
const [LEFT, TOP, BOTTOM] = [64, 48, 56];

/** Shares of offered requests by latency. What did not complete is drawn as a gap that the curve never closes. */
export function ecdfChart(title: string, curves: readonly EcdfCurve[], shown: (value: number) => string): string {
  const values = curves.flatMap(({ points }) => points.map(([value]) => value)).filter((value) => value > 0);
  if (values.length === 0) return "";
  const losing = curves.filter(({ completedShare }) => completedShare < ALL);
  const right =
    24 +
    14 * losing.length +
    Math.max(...curves.map(({ name, completedShare }) => widthOf(labelOf(name, completedShare))));
  const [x0, x1, y0, y1] = [LEFT, WIDTH - right, HEIGHT - BOTTOM, TOP];
  const x = logScale(Math.min(...values), Math.max(...values), x0, x1);
  const y = linearScale(0, 1, y0, y1, 5);
  const content = [
    text(LEFT, 22, title, { kind: "t" }),
    ...y.ticks.flatMap((tick) => [
      line(x0, y.at(tick), x1, y.at(tick), "grid"),
      text(x0 - 8, y.at(tick) + 4, `${Math.round(100 * tick)} %`, { anchor: "end", kind: "q" }),
    ]),
    line(x0, y0, x1, y0, "axis"),
    ...xMarks(x.ticks, x.at, y0, shown),
    text((x0 + x1) / 2, y0 + 42, "TTFT (logarithmic)", { anchor: "middle", kind: "q" }),
    text(14, (y0 + y1) / 2, "share of offered requests", { anchor: "middle", kind: "q", rotate: -90 }),
  ];
  const labels: Label[] = [];
  for (const curve of curves) {
    const { name, colour, points, completedShare } = curve;
    const places = points.map(([value, share]): [number, number] => [x.at(value), y.at(share)]);
    const last = places.at(-1);
    if (last === undefined) continue;
    content.push(path([...places, [x1, last[1]]], `line s${colour}`));
    if (completedShare < ALL) content.push(...lostMass(last[1], y1, x1, losing.indexOf(curve), colour));
    labels.push({ text: labelOf(name, completedShare), wanted: last[1] + 4, kind: String(colour) });
  }
  for (const label of placeLabels(labels, y1 + 4, y0)) {
    content.push(text(x1 + 14 * losing.length + 12, label.y, label.text, { kind: `f${label.kind}` }));
  }
  return figure(WIDTH, HEIGHT, title, content);
}

/** A bar from where the curve ends to all requests: those that did not complete, whatever became of them. */
function lostMass(from: number, to: number, x1: number, at: number, colour: number): string[] {
  const x = x1 + 3 + 14 * at;
  return [
    `<rect x="${n(x)}" y="${n(to)}" width="10" height="${n(from - to)}" class="f${colour}" opacity=".35"/>`,
    `<rect x="${n(x)}" y="${n(to)}" width="10" height="${n(from - to)}" class="thin s${colour}" stroke-dasharray="3 2"/>`,
  ];
}

function xMarks(
  ticks: readonly number[],
  at: (value: number) => number,
  y0: number,
  shown: (value: number) => string,
): string[] {
  let free = -Infinity;
  return ticks.flatMap((tick) => {
    const label = shown(tick);
    const half = widthOf(label) / 2;
    const mark = line(at(tick), y0, at(tick), y0 + 4, "axis");
    if (at(tick) - half < free + 6) return [mark];
    free = at(tick) + half;
    return [mark, text(at(tick), y0 + 18, label, { anchor: "middle", kind: "q" })];
  });
}

function labelOf(name: string, completedShare: number): string {
  return completedShare < ALL ? `${name}: ${(100 * (1 - completedShare)).toFixed(1)} % not completed` : name;
}
