import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import type { Mark } from "../../../src/dashboard/protocol.ts";
import { type Quantity, tick, written } from "../format.ts";
import { BASELINE_LINES } from "./baseline-lines.ts";

/** How far back charts go. */
const CHART_SECONDS: number = 5 * 60;

export interface ChartProps {
  /** Moments in seconds, then live values, then one list per baseline line. */
  readonly data: uPlot.AlignedData;
  readonly nowMs: number;
  readonly marks: readonly Mark[];
  readonly limit: number | undefined;
  readonly leastTop: number;
  readonly isShare: boolean;
  readonly format: (value: number) => Quantity;
  readonly label: string;
  /** Colours are read from the style sheet when a chart is made. */
  readonly theme: string;
}

/** A time chart on canvas: live values, baselines, a limit, and marks. */
export function Chart(props: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot>(null);
  const latest = useRef(props);
  latest.current = props;

  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    const made = new uPlot(options(element, latest), latest.current.data, element);
    chart.current = made;
    const observer = new ResizeObserver(() =>
      made.setSize({ width: element.clientWidth, height: element.clientHeight }),
    );
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      chart.current = null;
    };
  }, [props.theme]);

  useEffect(() => chart.current?.setData(props.data), [props.data, props.marks, props.limit]);

  const count = Array.from(props.data[1]).filter((value) => typeof value === "number").length;
  return <div class="chart" ref={place} role="img" aria-label={props.label} data-points={count} />;
}

type Latest = { readonly current: ChartProps };

function options(element: HTMLElement, latest: Latest): uPlot.Options {
  const style = getComputedStyle(element);
  const colour = (name: string): string => style.getPropertyValue(name).trim();
  const font = `11px ${style.fontFamily}`;
  const axis: uPlot.Axis = {
    stroke: colour("--ink-soft"),
    font,
    grid: { stroke: colour("--grid"), width: 1 },
    ticks: { show: false },
    gap: 4,
  };
  return {
    width: element.clientWidth,
    height: element.clientHeight,
    // Room above for the names of marks.
    padding: [14, 6, 0, 0],
    legend: { show: false },
    cursor: { sync: { key: "warmpath" }, drag: { x: false, y: false }, y: false, points: { size: 6 } },
    scales: {
      x: { time: true, range: () => [latest.current.nowMs / 1000 - CHART_SECONDS, latest.current.nowMs / 1000] },
      y: { range: (_, low, high) => verticalRange(latest.current, low, high) },
    },
    axes: [
      { ...axis, size: 20, space: 70, values: timesOf },
      {
        ...axis,
        size: 48,
        space: 26,
        values: (_, splits) => splits.map((split) => tick(split, latest.current.format(split))),
      },
    ],
    series: [
      {},
      { label: "live", stroke: colour("--live"), width: 2.5, points: { show: false }, spanGaps: false },
      ...BASELINE_LINES.map((line) => ({
        label: line.label,
        stroke: colour(line.colour),
        width: 1.75,
        dash: [...line.dash],
        points: { show: false },
      })),
    ],
    plugins: [marking(latest, colour, font), tooltip(latest)],
  };
}

/** The time of day; the first tick has no room for it beside the other axis. */
function timesOf(u: uPlot, splits: readonly number[]): string[] {
  const isRoomFor = (split: number): boolean => u.valToPos(split, "x") > 20;
  return splits.map((split) => (isRoomFor(split) ? new Date(split * 1000).toLocaleTimeString("en-GB") : ""));
}

/** Everything that is drawn fits, the limit included; shares above one half use the upper half. */
function verticalRange(
  { limit, leastTop, isShare }: ChartProps,
  low: number | null,
  high: number | null,
): [number, number] {
  if (isShare) return (low ?? 1) >= 0.5 ? [0.5, 1] : [0, 1];
  return [0, 1.12 * Math.max(leastTop, high ?? 0, limit ?? 0)];
}

/** Draws the limit, and each mark with the time in which the window is a mixture of before and after. */
function marking(latest: Latest, colour: (name: string) => string, font: string): uPlot.Plugin {
  const below = (u: uPlot): void => {
    const { marks, nowMs } = latest.current;
    for (const { atMs, cleanAtMs } of marks) {
      const from = u.valToPos(atMs / 1000, "x", true);
      const to = u.valToPos(Math.min(nowMs, cleanAtMs ?? nowMs) / 1000, "x", true);
      u.ctx.fillStyle = colour("--mixed");
      const left = Math.max(u.bbox.left, from);
      if (to > left) u.ctx.fillRect(left, u.bbox.top, to - left, u.bbox.height);
    }
  };
  const above = (u: uPlot): void => {
    const { ctx, bbox } = u;
    const ratio = uPlot.pxRatio;
    const { marks, limit } = latest.current;
    ctx.save();
    ctx.font = font.replace("11px", `${10.5 * ratio}px`);
    if (limit !== undefined) {
      const y = Math.round(u.valToPos(limit, "y", true));
      ctx.strokeStyle = colour("--limit");
      ctx.lineWidth = 1.25 * ratio;
      ctx.setLineDash([]);
      stroke(ctx, bbox.left, y, bbox.left + bbox.width, y);
      ctx.fillStyle = colour("--limit");
      ctx.textAlign = "left";
      ctx.fillText("SLO", bbox.left + 4 * ratio, y - 4 * ratio);
    }
    ctx.textAlign = "left";
    let startOfNext = Number.POSITIVE_INFINITY;
    // The newest first: where two names would overlap, the older one is left out.
    for (const { atMs, label } of marks.toReversed()) {
      const x = Math.round(u.valToPos(atMs / 1000, "x", true));
      if (x < bbox.left) continue;
      ctx.strokeStyle = colour("--mark");
      ctx.fillStyle = colour("--mark");
      ctx.lineWidth = ratio;
      ctx.setLineDash([3 * ratio, 3 * ratio]);
      stroke(ctx, x, bbox.top, x, bbox.top + bbox.height);
      const width = ctx.measureText(label).width;
      const left = Math.min(x, bbox.left + bbox.width - width);
      if (left + width > startOfNext) continue;
      startOfNext = left - 6 * ratio;
      ctx.fillText(label, left, bbox.top - 3 * ratio);
    }
    ctx.restore();
  };
  return { hooks: { drawClear: below, draw: above } };
}

function stroke(ctx: CanvasRenderingContext2D, fromX: number, fromY: number, toX: number, toY: number): void {
  ctx.beginPath();
  ctx.moveTo(fromX, fromY);
  ctx.lineTo(toX, toY);
  ctx.stroke();
}

/** The values under the pointer. */
function tooltip(latest: Latest): uPlot.Plugin {
  const box = document.createElement("div");
  box.className = "tooltip";
  box.hidden = true;
  return {
    hooks: {
      init: (u) => u.over.append(box),
      setCursor: (u) => {
        const { idx, left = -1 } = u.cursor;
        const isOver = u.over.matches(":hover");
        box.hidden = !isOver || idx === null || idx === undefined || left < 0;
        if (box.hidden || idx === null || idx === undefined) return;
        const lines = u.series.slice(1).flatMap(({ label }, at) => {
          const value = u.data[at + 1][idx];
          return value === null || value === undefined
            ? []
            : `${label as string} ${written(latest.current.format(value))}`;
        });
        const time = new Date(u.data[0][idx] * 1000).toLocaleTimeString("en-GB");
        box.textContent = [time, ...lines].join("\n");
        box.style.left = left > u.over.clientWidth / 2 ? "" : `${left + 10}px`;
        box.style.right = left > u.over.clientWidth / 2 ? `${u.over.clientWidth - left + 10}px` : "";
      },
    },
  };
}
