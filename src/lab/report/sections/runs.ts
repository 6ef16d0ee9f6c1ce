import { kendallTau } from "../../../measure/trend.ts";
import { levelTitle } from "../cell.ts";
import type { ReportCell } from "../cell.ts";
import { type Block, list, type Section, table, text } from "../document.ts";
import { ms, NOTHING, number, percent, signedPercent, whole } from "../format.ts";
import type { ArmAtLevel } from "../groups.ts";
import { groupAt, type ReportModel } from "../model.ts";
import { middleOf, valueOf } from "../reading.ts";
import { throughputOf } from "../throughput-kind.ts";
import { levelColumn } from "./levels.ts";

/** Each run on its own, and whether runs drift. */
export function runsSection(model: ReportModel): Section {
  const column = levelColumn(model);
  const groups = model.levels.flatMap((level) => model.arms.flatMap(({ name }) => groupAt(model, name, level) ?? []));
  const throughput = throughputOf(groups);
  const rows = groups.flatMap(({ cells, arm, level }) =>
    cells.map(({ run, repeats, seed, accounting, latencies, rates, saturated }) => [
      column.of(level),
      arm,
      String(run),
      seed === undefined ? NOTHING : String(seed),
      whole(accounting.offered),
      whole(accounting.completed),
      percent(accounting.offered === 0 ? undefined : 1 - accounting.completed / accounting.offered),
      ms(latencies.ttftMs.readings.completed.mean),
      ms(latencies.ttftMs.readings.completed.p50),
      ms(latencies.ttftMs.readings.completed.p95),
      ms(latencies.ttftMs.readings.offered.p50),
      ms(latencies.ttftMs.readings.offered.p90),
      ms(latencies.ttftMs.readings.offered.p95),
      ms(latencies.ttftMs.readings.offered.p99),
      number(throughput({ rates }).tokens),
      [
        ...(saturated === undefined ? ["unknown"] : saturated ? ["saturated"] : []),
        ...(repeats.length === 0 ? [] : [`stands for run ${repeats.join(", ")} too`]),
      ].join("; "),
    ]),
  );
  const blocks: Block[] = [
    table(
      "TTFT in ms",
      [
        column.title,
        "<Arm",
        "Run",
        "Seed",
        "Offered",
        "Completed",
        "Not completed",
        "Mean, completed",
        "p50, completed",
        "p95, completed",
        "p50, offered",
        "p90, offered",
        "p95, offered",
        "p99, offered",
        "Tokens/s",
        "<Remark",
      ],
      rows,
    ),
  ];
  const trends = groups.flatMap(trendsOf);
  blocks.push(
    trends.length > 0
      ? list(trends)
      : text(
          "No arm moves in one direction from its first run to its last in p50, p95 or in what it completes (three runs are the fewest that can show it).",
        ),
  );
  return { id: "runs", title: "Each run", blocks };
}

const FEWEST_RUNS = 3;

/** What rises or falls with every run: then runs are not repetitions of the same thing. */
function trendsOf({ arm, level, cells }: ArmAtLevel): string[] {
  if (cells.length < FEWEST_RUNS) return [];
  const quantities: readonly {
    title: string;
    of: (cell: ReportCell) => number | undefined;
    shown: (value: number) => string;
  }[] = [
    {
      title: "the share that did not complete",
      of: ({ accounting: { offered, completed } }) => (offered === 0 ? undefined : 1 - completed / offered),
      shown: (value) => percent(value),
    },
    {
      title: "TTFT p50 of completed requests",
      of: ({ latencies }) => valueOf(latencies.ttftMs.readings.completed.p50),
      shown: (value) => `${number(value)} ms`,
    },
    {
      title: "TTFT p95 of completed requests",
      of: ({ latencies }) => valueOf(latencies.ttftMs.readings.completed.p95),
      shown: (value) => `${number(value)} ms`,
    },
  ];
  return quantities.flatMap(({ title, of, shown }) => {
    const values = cells.map(of);
    if (values.some((value) => value === undefined)) return [];
    const series = values.map((value) => value ?? 0);
    const tau = kendallTau(series);
    if (Math.abs(tau) < 1 || changeOver(series) < 0.05) return [];
    const chance = 2 / factorial(series.length);
    return [
      `**Trend over runs: ${arm}, ${levelTitle(level)}: ${title} ${tau > 0 ? "rises" : "falls"} with every run:** ${series.map(shown).join(", ")} ` +
        `(by chance in ${percent(chance, 0)} of such series). Runs that drift are not repetitions: caches or state carry over.`,
    ];
  });
}

function changeOver(series: readonly number[]): number {
  const most = Math.max(...series.map(Math.abs));
  return most === 0 ? 0 : Math.abs(series[series.length - 1] - series[0]) / most;
}

function factorial(n: number): number {
  return n < 2 ? 1 : n * factorial(n - 1);
}

/** How much the same arm differs from itself. */
export function noiseSection(model: ReportModel): Section {
  const id = "noise";
  const title = "Noise floor";
  const column = levelColumn(model);
  const same = model.comparisons.filter(({ isSameArm }) => isSameArm);
  const blocks: Block[] = same.map(({ arm, baseline, levels }) =>
    table(
      `A/A: ${arm} and ${baseline} have the same settings`,
      [column.title, "TTFT p50 difference", "TTFT p95 difference", "E2E p50 difference", "<Verdict"],
      levels.map(({ level, differences, verdict }) => [
        column.of(level),
        ...["ttftP50Ms", "ttftP95Ms", "e2eP50Ms"].map((name) =>
          signedPercent(differences.find(({ metric }) => metric.name === name)?.change),
        ),
        verdict.kind.replaceAll("-", " "),
      ]),
    ),
  );
  if (same.length === 0)
    blocks.push(text("There is no A/A pair of arms; what the baseline's own runs differ by stands in for it."));
  const rows = model.groups.flatMap((group) => spreadRow(group, column.of(group.level)));
  blocks.push(
    rows.length === 0
      ? text("One run per arm and level: how far runs differ is unknown.")
      : table(
          "How far runs of the same arm lie apart: (largest − smallest) / mean",
          [column.title, "<Arm", "Runs", "TTFT p50", "TTFT p95", "E2E p50", "Tokens/s", "Completed"],
          rows,
        ),
  );
  return { id, title, blocks };
}

function spreadRow({ arm, cells }: ArmAtLevel, level: string): string[][] {
  if (cells.length < 2) return [];
  const spread = (of: (cell: ReportCell) => number | undefined): string => {
    const values = cells.flatMap((cell) => of(cell) ?? []);
    if (values.length < cells.length) return NOTHING;
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    return mean === 0 ? NOTHING : percent((Math.max(...values) - Math.min(...values)) / mean);
  };
  return [
    [
      level,
      arm,
      String(cells.length),
      spread(({ latencies }) => middleOf(latencies.ttftMs.readings.completed.p50)),
      spread(({ latencies }) => middleOf(latencies.ttftMs.readings.completed.p95)),
      spread(({ latencies }) => middleOf(latencies.e2eMs.readings.completed.p50)),
      spread((cell) => throughputOf(cells)(cell).tokens),
      spread(({ accounting: { offered, completed } }) => (offered === 0 ? undefined : completed / offered)),
    ],
  ];
}
