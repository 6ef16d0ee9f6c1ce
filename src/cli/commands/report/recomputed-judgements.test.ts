/**
 * What a report concludes, again from the records alone: limits that are met, differences with their intervals, the A/B
 * guide's rule, how far runs lie apart, what workers did, and the summary at the top.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { CellWorker } from "../../../lab/results/types.ts";
import type { ReadTable } from "./markdown-tables.test-support.ts";
import {
  e2e,
  END,
  expectCell,
  inFlightOverTime,
  isCompleted,
  LEVELS,
  type Line,
  mean,
  percentile,
  Recomputation,
  rowOf,
  RUNS,
  START,
  sum,
  TIMES,
  tokensInWindow,
  tpot,
  ttft,
  windowOf,
  WORKERS,
} from "./recomputation.test-support.ts";

const [TTFT_MS, TPOT_MS] = [35, 7.5];
const EXPERIMENT = `
name: judged
fleet: { model: qwen3-8b, gpu: h100, workers: 3, engine: { profile: vllm }, blockTokens: 64, kvPoolTokens: 20000 }
workload:
  conversations: { starters: 5, starterTokens: [900, 1600], outputTokensByTurn: [60], tailShare: 0 }
load: { concurrency: [6, 24] }
arms:
  - { name: rr, policy: round-robin }
  - { name: again, policy: round-robin }
  - { name: kv, policy: kv-cost }
${TIMES}slo: { ttftMs: ${TTFT_MS}, tpotMs: ${TPOT_MS} }
`;
const ARMS = ["rr", "again", "kv"];

let report: Recomputation;

beforeAll(async () => {
  report = await Recomputation.of(EXPERIMENT, ARMS);
}, 60_000);

afterAll(() => report.close());

/** A latency of all offered requests; what has no such time is in no population. */
function offered(records: readonly Line[], of: (line: Line) => number): number[] {
  return records
    .filter((line) => !isCompleted(line) || of !== tpot || line.outputTokens > 1)
    .map((line) => (isCompleted(line) ? of(line) : Infinity));
}

function completed(records: readonly Line[], of: (line: Line) => number): number[] {
  return offered(records, of).filter(Number.isFinite);
}

function ofRuns(arm: string, level: string, of: (all: readonly Line[]) => number): number[] {
  return RUNS.map((run) => of(report.all(arm, level, run)));
}

function tokensPerSecond(arm: string, level: string): number {
  return mean(ofRuns(arm, level, (all) => sum(all.map((line) => tokensInWindow(line))) / 10));
}

function byLevel(table: ReadTable, level: string): Record<string, string> {
  const row = table.rows.find((one) => one["Concurrency"] === level);
  if (row === undefined) throw new Error(`no row of ${level} in ${table.title}`);
  return row;
}

/** All numbers of a text, with their signs. */
function numbersIn(text: string): string[] {
  return [...text.matchAll(/[−+]?\d[\d,]*(?:\.\d+)?/g)].map(([number]) => number);
}

function expectNumbers(text: string, values: readonly number[]): void {
  const found = numbersIn(text);
  expect(found, `"${text}" should have ${values.join(", ")}`).toHaveLength(values.length);
  for (const [at, value] of values.entries()) expectCell(found[at], value);
}

describe("the judgements of a report, from the records alone", () => {
  test("percentiles of the gaps between chunks, from the buckets of the records", () => {
    expect.hasAssertions();
    const table = report.tableIn("Inter-token latency", /^ITL per gap in both/);
    report.eachGroup((arm, level, records) => {
      const buckets = new Map<number, number>();
      for (const { tokenTimes } of records.filter(isCompleted)) {
        const counts = tokenTimes?.gaps.bucketCounts ?? [];
        for (let i = 0; i < counts.length; i += 2)
          buckets.set(counts[i], (buckets.get(counts[i]) ?? 0) + counts[i + 1]);
      }
      const gapsMs = [...buckets].flatMap(([bucket, count]) => Array<number>(count).fill(middleMs(bucket)));
      const row = table.rows.find(
        (one) => one["Arm"] === arm && one["Concurrency"] === level && one["Population"] === "completed",
      )!;
      expectCell(row["n"], gapsMs.length);
      for (const [name, share] of [
        ["p50", 0.5],
        ["p90", 0.9],
        ["p95", 0.95],
        ["p99", 0.99],
      ] as const) {
        expectCell(row[name], percentile(gapsMs, share), 0.001);
      }
    });
  });

  test("the capacity under each limit and under all of them", () => {
    const [table] = report.tables("Capacity under the SLO");
    const p95 = (arm: string, level: string, of: (line: Line) => number): number =>
      percentile(offered(report.pooled(arm, level), of), 0.95);
    const limits = {
      [`TTFT p95 ≤ ${TTFT_MS} ms`]: [[ttft, TTFT_MS] as const],
      [`TPOT p95 ≤ ${TPOT_MS} ms`]: [[tpot, TPOT_MS] as const],
      "all of them": [[ttft, TTFT_MS] as const, [tpot, TPOT_MS] as const],
    };
    const verdicts = new Set<string>();
    for (const [limit, terms] of Object.entries(limits)) {
      for (const arm of ARMS) {
        const row = table.rows.find((one) => one["Limit"] === limit && one["Arm"] === `${arm}, 3 workers`)!;
        const isMet = (level: string): boolean => terms.every(([of, most]) => p95(arm, level, of) <= most);
        expect(row["Largest that meets it"]).toBe(LEVELS.findLast(isMet) ?? "none");
        expect(row["Smallest that misses it"]).toBe(LEVELS.find((level) => !isMet(level)) ?? "–");
        for (const [at, said] of row["Each level, p95 in ms"].split(/, (?=\d+: )/).entries()) {
          const [, level, verdict, shown] = /^(\d+): (\w+) \((.+)\)$/.exec(said)!;
          expect(level).toBe(LEVELS[at]);
          expect(verdict).toBe(isMet(level) ? "met" : "missed");
          verdicts.add(verdict);
          const missed = terms.find(([of, most]) => p95(arm, level, of) > most);
          expectCell(shown, p95(arm, level, (missed ?? terms[0])[0]));
        }
      }
    }
    // Otherwise half of this would test nothing.
    expect(verdicts).toEqual(new Set(["met", "missed"]));
  });

  test("differences, with intervals by leaving out each tenth of each run in turn", () => {
    expect.hasAssertions();
    const table = report.tableIn("Verdict", /^Change of kv against rr over all offered/);
    for (const level of LEVELS) {
      const row = byLevel(table, level);
      for (const [title, of, share] of [
        ["TTFT p50", ttft, 0.5],
        ["TTFT p95", ttft, 0.95],
        ["TPOT p50", tpot, 0.5],
        ["TPOT p95", tpot, 0.95],
        ["E2E p50", e2e, 0.5],
        ["E2E p95", e2e, 0.95],
      ] as const) {
        const statistic = (records: readonly Line[]): number => percentile(offered(records, of), share);
        const effect = (left: (line: Line) => boolean): number =>
          Math.log(
            statistic(report.pooled("kv", level).filter(left)) / statistic(report.pooled("rr", level).filter(left)),
          );
        const { low, high } = intervalOf(effect);
        const change = Math.exp(effect(() => true)) - 1;
        expectNumbers(saidOf(row[title]), [100 * change, 100 * (Math.exp(low) - 1), 100 * (Math.exp(high) - 1)]);
      }
      const kept = (line: Line): boolean =>
        isCompleted(line) && ttft(line) <= TTFT_MS && (line.outputTokens < 2 || tpot(line) <= TPOT_MS);
      const share = (arm: string, left: (line: Line) => boolean): number =>
        mean(
          report
            .pooled(arm, level)
            .filter(left)
            .map((line) => (kept(line) ? 1 : 0)),
        );
      const effect = (left: (line: Line) => boolean): number => share("kv", left) - share("rr", left);
      const { low, high } = intervalOf(effect);
      expectNumbers(saidOf(row["within the SLO"]), [100 * effect(() => true), 100 * low, 100 * high]);
      expectNumbers(saidOf(row["tokens/s"]), tokensDifference(level));
    }
  });

  test("the interval of the paired median has the median in it", () => {
    const [table] = report.tables("Paired: the same request in both arms");
    for (const level of LEVELS) {
      const row = table.rows.find((one) => one["Concurrency"] === level && one["Arm"] === "kv")!;
      const [middle, low, high] = numbersIn(row["Median difference (95 % interval)"]).map((text) =>
        Number(text.replace("−", "-").replace("+", "").replaceAll(",", "")),
      );
      expect(low).toBeLessThanOrEqual(middle);
      expect(high).toBeGreaterThanOrEqual(middle);
    }
  });

  test("the A/B guide's rule", () => {
    const table = report.tableIn("Decision rule of the A/B guide", /^kv against rr/);
    const verdicts = report.tableIn("Verdict", /^Over all offered/);
    for (const level of LEVELS) {
      const row = byLevel(table, level);
      const at = (arm: string, share: number): number => percentile(offered(report.pooled(arm, level), ttft), share);
      const improvement = Math.min(...[0.5, 0.95].map((share) => 1 - at("kv", share) / at("rr", share)));
      const variance = (at("kv", 0.95) - at("kv", 0.5)) / (at("rr", 0.95) - at("rr", 0.5));
      expectCell(row["TTFT improvement, p50 or p95, the smaller"], 100 * improvement);
      expectCell(row["Distance p50–p95, ratio"], variance);
      const isWorse = row["Other metrics worse"] !== "none";
      const isOpen = rowOf(verdicts, "kv", level)["Verdict"].startsWith("not comparable");
      const conclusion =
        improvement < 0.1 || variance > 1.1 || isWorse
          ? "plain routing is better"
          : improvement > 0.2
            ? "beneficial"
            : "between the two";
      expect(row["Conclusion"]).toBe(isOpen ? "cannot be decided" : conclusion);
    }
    const later = LEVELS.flatMap((level) => ARMS.flatMap((arm) => report.pooled(arm, level)));
    const factors = report.tableIn("Decision rule of the A/B guide", /^Factors/);
    const continuing = factors.rows.find((row) => row["Factor"].startsWith("Requests that continue"))!;
    expectCell(continuing["Value"], (100 * later.filter(({ turn }) => turn > 0).length) / later.length);
  });

  test("the noise floor: how far runs of an arm lie apart, and the same arm twice", () => {
    expect.hasAssertions();
    const table = report.tableIn("Noise floor", /^How far runs/);
    report.eachGroup((arm, level) => {
      const row = rowOf(table, arm, level);
      const apart = (values: readonly number[]): number =>
        (100 * (Math.max(...values) - Math.min(...values))) / mean(values);
      for (const [title, of, share] of [
        ["TTFT p50", ttft, 0.5],
        ["TTFT p95", ttft, 0.95],
        ["E2E p50", e2e, 0.5],
      ] as const) {
        expectCell(row[title], apart(ofRuns(arm, level, (all) => percentile(completed(windowOf(all), of), share))));
      }
      expectCell(row["Tokens/s"], apart(ofRuns(arm, level, (all) => sum(all.map((line) => tokensInWindow(line))))));
      const shares = ofRuns(arm, level, (all) => windowOf(all).filter(isCompleted).length / windowOf(all).length);
      expectCell(row["Completed"], apart(shares));
    });
    const same = report.tableIn("Noise floor", /^A\/A: again and rr/);
    for (const level of LEVELS) {
      const of = (arm: string): number => percentile(offered(report.pooled(arm, level), ttft), 0.5);
      expectCell(byLevel(same, level)["TTFT p50 difference"], 100 * (of("again") / of("rr") - 1));
    }
  });

  test("what the GPUs did: what workers told, and by the records who had how much", () => {
    const table = report.tableIn("What the GPUs did", /^Over all workers/);
    const single = report.tableIn("What the GPUs did", /^Worker by worker/);
    let evicted = 0;
    report.eachGroup((arm, level, records) => {
      const told = report.results.cells
        .filter((cell) => cell.arm === arm && String(cell.level.concurrency) === level)
        .map(({ workers }) => workers);
      const every = (of: (worker: CellWorker) => unknown): number[] => told.flat().map((one) => of(one) as number);
      const row = rowOf(table, arm, level);
      const busy = every(({ busyShare }) => busyShare);
      expectCell(row["Busy, mean"], 100 * mean(busy));
      expectNumbers(row["Busy, least–most"], [100 * Math.min(...busy), 100 * Math.max(...busy)]);
      expectCell(row["KV occupancy, mean"], 100 * mean(every(({ kvOccupancy }) => kvOccupancy)));
      expectCell(row["KV occupancy, max"], 100 * Math.max(...every(({ kvOccupancyMax }) => kvOccupancyMax)));
      expectCell(row["Evicted blocks"], sum(every(({ evictions }) => evictions)));
      expectCell(row["Preemptions"], sum(every(({ preemptions }) => preemptions)));
      expectCell(row["Queue, max"], Math.max(...every(({ queueMax }) => queueMax)));
      expect(row["Remark"]).toBe(sum(every(({ evictions }) => evictions)) > 0 ? "evictions" : "");
      evicted += sum(every(({ evictions }) => evictions));
      for (const [at, worker] of WORKERS.entries()) {
        const own = single.rows.find(
          (one) => one["Level"] === level && one["Arm"] === arm && one["Worker"] === worker,
        )!;
        const shares = ofRuns(arm, level, (all) => {
          const placed = windowOf(all).filter((line) => line.worker !== undefined);
          return placed.filter((line) => line.worker === worker).length / placed.length;
        });
        expectCell(own["Share of requests"], 100 * mean(shares));
        const steps = RUNS.map((run) => inFlightOverTime(report.all(arm, level, run)));
        const means = steps.map((all) => sum(all.map(({ counts, ns }) => counts[at] * ns)) / (END - START));
        expectCell(own["In flight, mean"], mean(means));
        expectCell(own["In flight, max"], Math.max(...steps.flat().map(({ counts }) => counts[at])));
        expectCell(own["Busy"], 100 * mean(told.map((workers) => workers[at].busyShare as number)));
      }
      expect(records.length).toBeGreaterThan(0);
    });
    expect(evicted).toBeGreaterThan(0);
  });

  test("the results summary", () => {
    expect.hasAssertions();
    const { rows } = report.tableIn("Results summary", /^kv against rr/);
    const said = (metric: string): string => rows.find((row) => row["Metric"] === metric)!["Value"];
    const gains = (of: (arm: string, level: string) => number, sign: number): number[] =>
      LEVELS.map((level) => (100 * sign * (of("kv", level) - of("rr", level))) / of("rr", level));
    for (const [name, share] of [
      ["p50", 0.5],
      ["p95", 0.95],
    ] as const) {
      const all = gains((arm, level) => percentile(completed(report.pooled(arm, level), ttft), share), -1);
      const at = (value: number): number => Number(LEVELS[all.indexOf(value)]);
      const [least, most] = [Math.min(...all), Math.max(...all)];
      expectNumbers(said(`Worst TTFT ${name} change`), [least, at(least)]);
      expectNumbers(said(`Peak TTFT ${name} improvement`), [most, at(most)]);
      expectNumbers(said(`Average TTFT ${name} improvement (6–24)`), [mean(all)]);
      const beside = report.tableIn("Time to first token", /^TTFT, kv beside rr: all requests together/);
      for (const [index, row] of beside.rows.entries()) expectCell(row[`${name} Δ`], all[index]);
    }
    for (const arm of ["kv", "rr"]) {
      const hits = LEVELS.map((level) => {
        const told = report.pooled(arm, level).filter((line) => line.observedCachedTokens !== "unavailable");
        const found = sum(told.map((line) => line.observedCachedTokens as number));
        return (100 * found) / sum(told.map(({ promptTokens }) => promptTokens));
      });
      expectNumbers(said(`Cache hit rate (${arm})`), [Math.min(...hits), Math.max(...hits), mean(hits)]);
      const rates = LEVELS.map((level) => tokensPerSecond(arm, level));
      const peak = Math.max(...rates);
      expectNumbers(said(`Peak throughput (${arm})`), [peak, Number(LEVELS[rates.indexOf(peak)])]);
    }
    const range = (all: readonly number[]): number[] => [Math.min(...all), Math.max(...all), mean(all)];
    expectNumbers(said("Throughput advantage (kv)"), range(gains(tokensPerSecond, 1)));
    const itl = gains((arm, level) => percentile(completed(report.pooled(arm, level), tpot), 0.5), -1);
    expectNumbers(said("ITL advantage (kv, p50 per request)"), range(itl));
  });
});

/** The middle of a bucket of gaps, as docs/reference/results.md says which durations it holds. */
function middleMs(bucket: number): number {
  const lower = (b: number): number => {
    if (b < 2048) return b;
    const power = Math.floor(b / 1024) - 1;
    return (b - 1024 * power) * 2 ** power;
  };
  return (lower(bucket) + lower(bucket + 1) - 1) / 2 / 1e6;
}

/** A change with its interval, without the words around it. */
function saidOf(cell: string): string {
  return cell.replace(/^.*?: /, "").replace(/, not shown$/, "");
}

/**
 * The 95 % interval of an effect: each tenth of each run is left out in turn, and the error is the larger of the one over tenths
 * and the one over runs. With two runs there are two degrees of freedom, whose quantile has a closed form.
 */
function intervalOf(effect: (left: (line: Line) => boolean) => number): { low: number; high: number } {
  const tenthOf = ({ cell, intendedNs }: Line): string =>
    `${cell.split("/").at(-1)} ${Math.floor((intendedNs - START) / 1e9)}`;
  const without = RUNS.flatMap((run) =>
    Array.from({ length: 10 }, (_, tenth) => effect((line) => tenthOf(line) !== `run-${run} ${tenth}`)),
  );
  return intervalAround(
    effect(() => true),
    without,
  );
}

/** Tokens per second: what fell into each tenth of each run, that tenth of time left out of both arms. */
function tokensDifference(level: string): number[] {
  const tenths = (arm: string): number[] =>
    RUNS.flatMap((run) =>
      Array.from({ length: 10 }, (_, tenth) =>
        sum(
          report
            .all(arm, level, run)
            .map((line) => tokensInWindow(line, START + tenth * 1e9, START + (tenth + 1) * 1e9)),
        ),
      ),
    );
  const [kv, rr] = [tenths("kv"), tenths("rr")];
  const without = kv.map((value, at) => Math.log((sum(kv) - value) / (sum(rr) - rr[at])));
  const effect = Math.log(sum(kv) / sum(rr));
  const { low, high } = intervalAround(effect, without);
  return [effect, low, high].map((value) => 100 * (Math.exp(value) - 1));
}

function intervalAround(all: number, without: readonly number[]): { low: number; high: number } {
  const influences = without.map((value) => (without.length - 1) * (mean(without) - value));
  const error = (values: readonly number[]): number =>
    Math.sqrt(sum(values.map((value) => value ** 2)) / (values.length * (values.length - 1)));
  const perRun = RUNS.map((_, at) => mean(influences.slice(10 * at, 10 * at + 10)));
  const quantile = 0.95 / Math.sqrt(2 * 0.975 * 0.025);
  const half = quantile * Math.max(error(influences), error(perRun));
  return { low: all - half, high: all + half };
}
