import { linearScale } from "./scale.ts";
import { COLOURS, figure, line, n, path, text, widthOf } from "./svg.ts";

/** Requests in flight on every worker of one arm. */
export interface InFlightPanel {
  readonly title: string;
  readonly workers: readonly string[];
  readonly stretchSeconds: number;
  readonly means: readonly ArrayLike<number>[];
}

const WIDTH = 820;
const PANEL = 180;
const [LEFT, TOP] = [64, 48];

/** One panel per arm under the same axes, so that they can be compared by eye. */
export function inFlightChart(title: string, panels: readonly InFlightPanel[], batchLimit: number | undefined): string {
  const most = Math.max(1, batchLimit ?? 0, ...panels.flatMap(({ means }) => means.flatMap((row) => Array.from(row))));
  const right = 24 + Math.max(...panels.flatMap(({ workers }) => workers.map(widthOf)), 60);
  const [x0, x1] = [LEFT, WIDTH - right];
  const height = TOP + panels.length * PANEL + 30;
  const content = [text(LEFT, 22, title, { kind: "t" })];
  for (const [at, panel] of panels.entries()) {
    const [y1, y0] = [TOP + at * PANEL + 26, TOP + (at + 1) * PANEL - 26];
    const y = linearScale(0, most, y0, y1, 4);
    const seconds = panel.stretchSeconds * (panel.means[0]?.length ?? 1);
    const x = linearScale(0, seconds, x0, x1, 6);
    content.push(
      text(x0, y1 - 8, panel.title),
      ...y.ticks.flatMap((tick) => [
        line(x0, y.at(tick), x1, y.at(tick), "grid"),
        text(x0 - 8, y.at(tick) + 4, String(tick), { anchor: "end", kind: "q" }),
      ]),
      ...x.ticks.map((tick) => text(x.at(tick), y0 + 15, `${tick} s`, { anchor: "middle", kind: "q" })),
    );
    if (batchLimit !== undefined) {
      content.push(
        line(x0, y.at(batchLimit), x1, y.at(batchLimit), "limit"),
        text(x1 + 6, y.at(batchLimit) + 4, `batch ${batchLimit}`, { kind: "q" }),
      );
    }
    for (const [worker, row] of panel.means.entries()) {
      const points = Array.from(row, (value, i): [number, number] => [
        x.at((i + 0.5) * panel.stretchSeconds),
        y.at(value),
      ]);
      content.push(path(points, `thin s${worker % COLOURS}`));
    }
    if (panel.workers.length <= COLOURS) {
      const top = batchLimit === undefined ? y1 + 10 : Math.max(y1 + 10, y.at(batchLimit) + 20);
      content.push(...panel.workers.map((worker, i) => text(x1 + 6, top + 14 * i, worker, { kind: `f${i}` })));
    }
  }
  content.push(
    text(16, TOP + (panels.length * PANEL) / 2, "requests in flight", { anchor: "middle", kind: "q", rotate: -90 }),
  );
  content.push(text((x0 + x1) / 2, height - 10, "time in the window", { anchor: "middle", kind: "q" }));
  return figure(WIDTH, height, title, content);
}

/** A grid of numbers for one arm: a row per worker, a column per level. */
export interface HeatPanel {
  readonly title: string;
  readonly rows: readonly string[];
  readonly columns: readonly string[];
  readonly values: readonly (readonly (number | undefined)[])[];
}

const MOST_ROWS = 32;

/** Panels beside each other, darker where more was in flight. */
export function heatMap(title: string, panels: readonly HeatPanel[], shown: (value: number) => string): string {
  const values = panels.flatMap((panel) => panel.values.flatMap((row) => row.flatMap((value) => value ?? [])));
  if (values.length === 0) return "";
  const most = Math.max(...values);
  const rows = Math.min(MOST_ROWS, Math.max(...panels.map((panel) => panel.rows.length)));
  const rowHeight = rows > 16 ? 14 : 26;
  const labels = 16 + Math.max(...panels.flatMap((panel) => panel.rows.map(widthOf)));
  const perRow = panels.length > 1 ? 2 : 1;
  const width = (WIDTH - 20) / perRow;
  const panelHeight = 56 + rows * rowHeight;
  const content = [text(10, 22, title, { kind: "t" })];
  for (const [at, panel] of panels.entries()) {
    const x0 = 10 + (at % perRow) * width + labels;
    const y0 = 36 + Math.floor(at / perRow) * panelHeight + 24;
    const cell = (width - labels - 16) / Math.max(1, panel.columns.length);
    content.push(text(x0, y0 - 8, panel.title));
    for (const [row, name] of panel.rows.slice(0, rows).entries()) {
      content.push(text(x0 - 8, y0 + row * rowHeight + rowHeight / 2 + 4, name, { anchor: "end", kind: "q" }));
      for (const [column, value] of (panel.values[row] ?? []).entries()) {
        if (value === undefined) continue;
        const share = most === 0 ? 0 : value / most;
        const [x, y] = [x0 + column * cell, y0 + row * rowHeight];
        content.push(
          `<rect x="${n(x)}" y="${n(y)}" width="${n(cell - 2)}" height="${rowHeight - 2}" class="f0" opacity="${n(0.08 + 0.72 * share)}"/>`,
        );
        if (rowHeight > 16 && cell > widthOf(shown(value)) + 4) {
          content.push(text(x + cell / 2 - 1, y + rowHeight / 2 + 3, shown(value), { anchor: "middle" }));
        }
      }
    }
    const every = Math.ceil((Math.max(...panel.columns.map(widthOf)) + 6) / cell);
    for (const [column, name] of panel.columns.entries()) {
      if (column % every !== 0) continue;
      content.push(
        text(x0 + column * cell + cell / 2, y0 + rows * rowHeight + 14, name, { anchor: "middle", kind: "q" }),
      );
    }
  }
  const height = 36 + Math.ceil(panels.length / perRow) * panelHeight + 6;
  return figure(WIDTH, height, title, content);
}
