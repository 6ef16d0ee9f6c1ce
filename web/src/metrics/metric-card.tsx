import { useMemo } from "preact/hooks";
import type uPlot from "uplot";
import {
  FEWEST_FOR_P99,
  HISTORY_COLUMNS,
  type HistoryRow,
  isSloMet,
  type Mark,
  type RollingWindow,
  type SloLimits,
  type SloState,
} from "../../../src/dashboard/protocol.ts";
import { difference, formatCount, NOTHING, seconds, short, written } from "../format.ts";
import { BASELINE_LINES, type BaselineReader } from "./baseline-lines.ts";
import { Chart } from "./chart.tsx";
import { type MetricDefinition, type Statistic, STATISTICS } from "./definitions.ts";

export interface MetricCardProps {
  readonly metric: MetricDefinition;
  readonly statistic: Statistic;
  readonly window: RollingWindow;
  readonly rows: readonly HistoryRow[];
  readonly concurrency: number | null;
  readonly baselines: BaselineReader;
  readonly slo: SloLimits;
  readonly marks: readonly Mark[];
  readonly nowMs: number;
  readonly theme: string;
}

const CONCURRENCY = HISTORY_COLUMNS.indexOf("concurrency");

const SLO_WORDS: Readonly<Record<SloState, string>> = { met: "SLO met", missed: "SLO missed", unknown: "SLO open" };

/** One metric: now in large, the last minutes below, and what the recorded policies did at this concurrency. */
export function MetricCard(props: MetricCardProps) {
  const { metric, statistic, window, concurrency, slo } = props;
  const value = metric.value(window, statistic);
  const limit = metric.sloMs?.(slo);
  const latency = metric.latency?.(window);
  const state = latency === undefined ? "unknown" : isSloMet(latency, limit, window.errorShare);
  const data = useMemo(() => series(props), [props.rows, statistic, props.baselines, metric]);
  const shown = value === null ? undefined : metric.format(value);
  const isThin = statistic === "p99" && latency !== undefined && latency.n < FEWEST_FOR_P99;
  return (
    <section class="card metric" data-metric={metric.id} data-slo={limit === undefined ? undefined : state}>
      <header>
        <h3>
          {metric.title} <small>{metric.about}</small>
        </h3>
        {limit !== undefined && (
          <span class={`verdict ${state}`} title={`p95 at most ${written(metric.format(limit))}`}>
            {SLO_WORDS[state]}
          </span>
        )}
      </header>
      <p class={`now ${isThin ? "thin" : ""}`}>
        <span class="value" data-testid={`value-${metric.id}`} data-value={value ?? ""}>
          {shown?.value ?? NOTHING}
        </span>
        <span class="unit">{shown?.unit ?? ""}</span>
        {latency !== undefined && <span class="statistic">{statistic}</span>}
        <Beside {...props} />
      </p>
      <Chart
        data={data}
        nowMs={props.nowMs}
        marks={props.marks}
        limit={limit}
        leastTop={metric.leastTop}
        isShare={metric.isShare ?? false}
        format={metric.format}
        label={chartLabel(props, value)}
        theme={props.theme}
      />
      <BaselineList {...props} value={value} key={concurrency} />
    </section>
  );
}

/** What stands beside the large number: the other percentiles and n, or what explains it. */
function Beside({ metric, statistic, window }: MetricCardProps) {
  const latency = metric.latency?.(window);
  if (latency !== undefined) {
    return (
      <span class="beside">
        {STATISTICS.filter((one) => one !== statistic).map((one) => (
          <span key={one} class={one === "p99" && latency.n < FEWEST_FOR_P99 ? "thin" : ""}>
            {one} <b>{latency[one] === null ? NOTHING : written(metric.format(latency[one]))}</b>
          </span>
        ))}
        <span title={latency.n < FEWEST_FOR_P99 ? `p99 means little below n = ${formatCount(FEWEST_FOR_P99)}` : ""}>
          n <b>{formatCount(latency.n)}</b>
        </span>
      </span>
    );
  }
  if (metric.id === "in-flight") {
    const { oldestInFlightMs } = window;
    return (
      <span class="beside">
        <span>
          oldest <b>{oldestInFlightMs === null ? NOTHING : seconds(oldestInFlightMs)}</b>
        </span>
      </span>
    );
  }
  if (metric.id !== "errors") return null;
  const kinds = Object.entries(window.errorsByKind).filter(([, count]) => count > 0);
  return (
    <span class="beside">
      {kinds.map(([kind, count]) => (
        <span key={kind}>
          {kind} <b>{formatCount(count)}</b>
        </span>
      ))}
    </span>
  );
}

function BaselineList({
  metric,
  statistic,
  concurrency,
  baselines,
  window,
  value,
}: MetricCardProps & { value: number | null }) {
  const name = metric.baseline?.(statistic);
  // No card ever has any, so no room is kept for them.
  if (!baselines.hasAny) return null;
  if (name === undefined) return <p class="baselines" />;
  const isSending = window.inFlight > 0 || window.requestsPerSecond > 0;
  const isRecorded = BASELINE_LINES.some(({ role }) => baselines.read(role, name, concurrency).kind !== "none");
  if (!isRecorded) {
    const forWhat = concurrency === null ? "a schedule" : `${concurrency} conversations`;
    return <p class="baselines none">no baseline was recorded for {forWhat}</p>;
  }
  return (
    <ul class="baselines" aria-label={`Recorded at ${concurrency} conversations`}>
      {BASELINE_LINES.map(({ role, label, colour }) => {
        const reading = baselines.read(role, name, concurrency);
        const between =
          reading.kind === "interpolated" ? `between the levels ${reading.between.join(" and ")}` : "recorded";
        return (
          <li
            key={role}
            class={reading.kind}
            title={reading.kind === "none" ? "nothing was recorded for this" : between}
          >
            <i class={`swatch ${role}`} style={{ borderColor: `var(${colour})` }} />
            <span class="name">{label}</span>
            {reading.kind !== "none" ? (
              <>
                <b>
                  {reading.kind === "interpolated" && "≈ "}
                  {short(metric.format(reading.value))}
                </b>
                <span class="difference">{value === null || !isSending ? "" : gap(metric, value, reading.value)}</span>
              </>
            ) : (
              <span class="none">none</span>
            )}
          </li>
        );
      })}
    </ul>
  );
}

/** Shares differ in points, all else in per cent. */
function gap(metric: MetricDefinition, live: number, baseline: number): string {
  if (metric.format(0).unit !== "%") return difference(live, baseline);
  const points = 100 * (live - baseline);
  return `${points < 0 ? "−" : "+"}${Math.abs(points).toFixed(Math.abs(points) < 9.95 ? 1 : 0)} pt`;
}

function series({ rows, metric, statistic, baselines }: MetricCardProps): uPlot.AlignedData {
  const column = HISTORY_COLUMNS.indexOf(metric.column(statistic));
  const name = metric.baseline?.(statistic);
  return [
    rows.map((row) => (row[0] ?? 0) / 1000),
    rows.map((row) => row[column]),
    ...BASELINE_LINES.map(({ role }) =>
      rows.map((row) => {
        const reading = name === undefined ? undefined : baselines.read(role, name, row[CONCURRENCY]);
        return reading === undefined || reading.kind === "none" ? null : reading.value;
      }),
    ),
  ];
}

function chartLabel({ metric, statistic, concurrency, baselines }: MetricCardProps, value: number | null): string {
  const name = metric.baseline?.(statistic);
  const recorded = BASELINE_LINES.flatMap(({ role, label }) => {
    const reading = name === undefined ? undefined : baselines.read(role, name, concurrency);
    return reading === undefined || reading.kind === "none" ? [] : `${label} ${written(metric.format(reading.value))}`;
  });
  const what = metric.latency === undefined ? metric.title : `${metric.title} ${statistic}`;
  const now = value === null ? "no value yet" : `now ${written(metric.format(value))}`;
  return [`${what} over the last minutes: ${now}`, ...recorded].join("; ");
}
