/**
 * Every table of a report again, from the lines of records.jsonl.gz alone and with none of the code that made it: sorted
 * lists, plain sums and brute force. A number that cannot be found again here could not be trusted in a report.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
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
} from "./recomputation.test-support.ts";

const EXPERIMENT = `
name: recomputed
fleet: { model: qwen3-8b, gpu: h100, workers: 3, engine: { profile: vllm }, blockTokens: 64, kvPoolTokens: 40000 }
workload:
  conversations: { starters: 3, starterTokens: [600, 900], outputTokensByTurn: [1, 40], tailShare: 0 }
load: { concurrency: [6, 24] }
arms:
  - { name: rr, policy: round-robin }
  - { name: kv, policy: kv-cost, admission: { mode: shed, watermarks: { kvBlocksFraction: 0.01 } } }
${TIMES}slo: { ttftMs: 40 }
`;
const ARMS = ["rr", "kv"];

let report: Recomputation;

beforeAll(async () => {
  report = await Recomputation.of(EXPERIMENT, ARMS);
}, 60_000);

afterAll(() => report.close());

const all = (arm: string, level: string, number: number): Line[] => report.all(arm, level, number);
const pooled = (arm: string, level: string): Line[] => report.pooled(arm, level);
const tables = (section: string): ReadTable[] => report.tables(section);
const tableIn = (section: string, title: RegExp): ReadTable => report.tableIn(section, title);
const eachGroup: Recomputation["eachGroup"] = (check) => report.eachGroup(check);

describe("the tables of a report, from the records alone", () => {
  test("accounts, refusals and tokens", () => {
    expect.hasAssertions();
    const [accounts] = tables("Accounting");
    eachGroup((arm, level, records) => {
      const row = rowOf(accounts, arm, level);
      expectCell(row["Offered"], records.length);
      expectCell(row["Completed"], records.filter(isCompleted).length);
      expectCell(row["Shed"], records.filter(({ account }) => account === "shed").length);
      expectCell(row["Not completed"], 100 * (1 - records.filter(isCompleted).length / records.length));
      const tokens = rowOf(tableIn("Accounting", /^Tokens per request/), arm, level);
      expectCell(tokens["Prompt, offered"], mean(records.map(({ promptTokens }) => promptTokens)));
      expectCell(
        tokens["Output, completed"],
        mean(records.filter(isCompleted).map(({ outputTokens }) => outputTokens)),
      );
      expectCell(
        tokens["Prompt, completed"],
        mean(records.filter(isCompleted).map(({ promptTokens }) => promptTokens)),
      );
    });
    // The experiment is made so that something is shed; otherwise half of this file would test nothing.
    expect(pooled("kv", "24").filter(({ account }) => account === "shed").length).toBeGreaterThan(20);
  });

  test("TTFT, TPOT and E2E in both populations", () => {
    expect.hasAssertions();
    for (const [section, title, of, needs] of [
      ["Time to first token", /^TTFT in both/, ttft, () => true],
      ["Inter-token latency", /^TPOT in both/, tpot, (line: Line) => line.outputTokens > 1],
      ["End-to-end latency", /^E2E in both/, e2e, () => true],
    ] as const) {
      const table = tableIn(section, title);
      eachGroup((arm, level, records) => {
        const done = records.filter(isCompleted).filter(needs).map(of);
        const lost = records.filter((line) => !isCompleted(line)).map(() => Infinity);
        for (const [population, values] of [
          ["completed", done],
          ["offered", [...done, ...lost]],
        ] as const) {
          const row = table.rows.find(
            (one) => one["Arm"] === arm && one["Concurrency"] === level && one["Population"] === population,
          )!;
          expectCell(row["n"], values.length);
          for (const [name, share] of [
            ["p50", 0.5],
            ["p90", 0.9],
            ["p95", 0.95],
            ["p99", 0.99],
          ] as const) {
            const value = percentile(values, share);
            if (name === "p99" && values.length < 1000) expect(row[name]).toBe("too few");
            else if (value === Infinity || Number.isNaN(value)) expect(row[name]).toBe("not reached");
            else expectCell(row[name], value);
          }
          if (values.includes(Infinity)) expect(row["Mean (ms)"]).toBe("not reached");
          else expectCell(row["Mean (ms)"], mean(values));
        }
      });
    }
  });

  test("gaps between chunks: how many, and their mean", () => {
    expect.hasAssertions();
    const table = tableIn("Inter-token latency", /^ITL per gap in both/);
    eachGroup((arm, level, records) => {
      const gaps = records
        .filter(isCompleted)
        .flatMap(({ tokenTimes }) => (tokenTimes === undefined ? [] : [tokenTimes.gaps]));
      const count = sum(gaps.map(({ bucketCounts }) => sum(bucketCounts.filter((_, at) => at % 2 === 1))));
      const row = table.rows.find(
        (one) => one["Arm"] === arm && one["Concurrency"] === level && one["Population"] === "completed",
      )!;
      expectCell(row["n"], count);
      expectCell(row["Mean (ms)"], sum(gaps.map(({ sumNs }) => sumNs)) / count / 1e6);
    });
  });

  test("snapshots: means of their percentiles, and changes between arms", () => {
    expect.hasAssertions();
    const table = tableIn("Time to first token", /mean over snapshots and runs/);
    for (const level of LEVELS) {
      const of = (arm: string, share: number): number =>
        mean(
          RUNS.flatMap((run) =>
            [0, 1].map((part) => {
              const records = windowOf(all(arm, level, run), START + part * 5e9, START + (part + 1) * 5e9);
              return percentile(records.filter(isCompleted).map(ttft), share);
            }),
          ),
        );
      const row = table.rows.find((one) => one["Concurrency"] === level)!;
      const completed = (arm: string): number => mean(pooled(arm, level).map((line) => (isCompleted(line) ? 1 : 0)));
      const isSameShare = Math.abs(completed("rr") - completed("kv")) < 0.005;
      for (const [name, share] of [
        ["p50", 0.5],
        ["p95", 0.95],
      ] as const) {
        expectCell(row[`rr ${name} (ms)`], of("rr", share));
        expectCell(row[`kv ${name} (ms)`], of("kv", share));
        // The arm that sheds differs in two things; of what it completed alone no gain is told.
        if (isSameShare) expectCell(row[`${name} Δ`], 100 * (1 - of("kv", share) / of("rr", share)));
        else expect(row[`${name} Δ`]).toBe("–, not comparable");
      }
    }
  });

  test("rates, cache shares and the share within the SLO", () => {
    expect.hasAssertions();
    const rates = tableIn("Throughput", /^Offered and served/);
    const cache = tableIn("Cache hit rates", /^Ceiling/);
    const verdict = tableIn("Verdict", /^Over all offered/);
    eachGroup((arm, level, records) => {
      const row = rowOf(rates, arm, level);
      const runs = RUNS.map((run) => all(arm, level, run));
      expectCell(row["Offered/s"], mean(runs.map((run) => windowOf(run).length / 10)));
      const completions = (run: readonly Line[]): number =>
        run.filter(({ account, endNs }) => account === "completed" && endNs! >= START && endNs! < END).length;
      expectCell(row["Served/s in the window"], mean(runs.map((run) => completions(run) / 10)));
      expectCell(
        row["Tokens/s in the window"],
        mean(runs.map((run) => sum(run.map((line) => tokensInWindow(line))) / 10)),
      );
      const known = (field: "predictedCachedTokens" | "observedCachedTokens"): number => {
        const told = records.filter((line) => line[field] !== "unavailable");
        return (
          (100 * sum(told.map((line) => line[field] as number))) / sum(told.map(({ promptTokens }) => promptTokens))
        );
      };
      expectCell(rowOf(cache, arm, level)["Predicted"], known("predictedCachedTokens"));
      expectCell(rowOf(cache, arm, level)["Observed"], known("observedCachedTokens"));
      const kept = records.filter((line) => isCompleted(line) && ttft(line) <= 40).length;
      expectCell(rowOf(verdict, arm, level)["Within the SLO"], (100 * kept) / records.length);
    });
  });

  test("TTFT by tenth of arrivals", () => {
    expect.hasAssertions();
    const table = tables("Stationarity: TTFT by arrival")[0];
    eachGroup((arm, level) => {
      for (let tenth = 0; tenth < 10; tenth++) {
        const medians = RUNS.map((run) => {
          const records = windowOf(all(arm, level, run)).sort((a, b) => a.intendedNs - b.intendedNs);
          const part = records.slice(
            Math.floor((records.length * tenth) / 10),
            Math.floor((records.length * (tenth + 1)) / 10),
          );
          return percentile(
            part.map((line) => (isCompleted(line) ? ttft(line) : Infinity)),
            0.5,
          );
        });
        const cell = rowOf(table, arm, level)[String(tenth + 1)];
        if (medians.every(Number.isFinite)) expectCell(cell, mean(medians));
        else expect(cell).toBe("–");
      }
    });
  });

  test("the anatomy of TTFT, with the fastest prefill found by brute force", () => {
    expect.hasAssertions();
    const [table] = tables("Latency anatomy");
    const done = LEVELS.flatMap((level) => ARMS.flatMap((arm) => pooled(arm, level))).filter(isCompleted);
    const step = (line: Line): number => Math.floor((line.promptTokens - (line.observedCachedTokens as number)) / 64);
    const onWorker = (line: Line): number => (line.firstContentNs! - line.placedNs!) / 1e6;
    const fastest = (line: Line): number =>
      Math.min(...done.filter((other) => step(other) >= step(line)).map(onWorker));
    const sample = pooled("kv", "6").filter(isCompleted);
    const row = rowOf(table, "kv", "6");
    expectCell(row["n"], sample.length);
    expectCell(row["Own prefill"], mean(sample.map(fastest)));
    expectCell(row["Waiting on the worker"], mean(sample.map((line) => onWorker(line) - fastest(line))));
    expectCell(row["To the worker"], mean(sample.map((line) => (line.placedNs! - line.sentNs!) / 1e6)));
    eachGroup((arm, level, records) => {
      expectCell(rowOf(table, arm, level)["TTFT"], mean(records.filter(isCompleted).map(ttft)));
    });
  });

  test("balance: spread by walking through time, turns that stayed, the longest wait", () => {
    expect.hasAssertions();
    const [table] = tables("Balance");
    eachGroup((arm, level, records) => {
      const row = rowOf(table, arm, level);
      expectCell(row["In-flight spread, mean"], mean(RUNS.map((run) => spreadMean(all(arm, level, run)))));
      const turns = RUNS.flatMap((run) =>
        windowOf(all(arm, level, run)).flatMap((line) => stayed(line, all(arm, level, run))),
      );
      expectCell(row["Turns that stayed"], (100 * turns.filter(Boolean).length) / turns.length);
      const longest = Math.max(
        ...records.filter(isCompleted).map((line) => (line.firstContentNs! - line.placedNs!) / 1e6),
      );
      expectCell(row["Worker TTFT max"], longest >= 1000 ? longest / 1000 : longest);
    });
  });

  test("pairs by id", () => {
    expect.hasAssertions();
    const [table] = tables("Paired: the same request in both arms");
    for (const level of LEVELS) {
      const row = table.rows.find((one) => one["Concurrency"] === level)!;
      const differences: number[] = [];
      let neither = 0;
      for (const run of RUNS) {
        for (const line of windowOf(all("rr", level, run))) {
          const other = windowOf(all("kv", level, run)).find(({ id }) => id === line.id);
          if (other === undefined) continue;
          const [x, y] = [line, other].map((one) => (isCompleted(one) ? ttft(one) : Infinity));
          if (x === y && x === Infinity) neither += 1;
          else differences.push(y - x);
        }
      }
      expectCell(row["Pairs"], differences.length + neither);
      expectCell(row["Faster"], differences.filter((value) => value < 0).length);
      expectCell(row["Slower"], differences.filter((value) => value > 0).length);
      expectCell(row["Only baseline completed"], differences.filter((value) => value === Infinity).length);
      const median = percentile(differences, 0.5);
      if (Number.isFinite(median)) expectCell(row["Median difference (95 % interval)"], median);
    }
  });

  test("each run, who was turned away, and how late the client was", () => {
    expect.hasAssertions();
    const [runs] = tables("Each run");
    const [lost] = tables("Who was turned away");
    const [client] = tables("Client health");
    eachGroup((arm, level, records) => {
      for (const run of RUNS) {
        const own = windowOf(all(arm, level, run));
        const row = runs.rows.find(
          (one) => one["Arm"] === arm && one["Concurrency"] === level && one["Run"] === String(run),
        )!;
        expectCell(row["Offered"], own.length);
        expectCell(row["p50, completed"], percentile(own.filter(isCompleted).map(ttft), 0.5));
        expectCell(row["p95, completed"], percentile(own.filter(isCompleted).map(ttft), 0.95));
      }
      const away = records.filter((line) => !isCompleted(line));
      if (away.length > 0) {
        expectCell(rowOf(lost, arm, level)["Not completed"], away.length);
        expectCell(
          rowOf(lost, arm, level)["Their prompts (tokens)"],
          mean(away.map(({ promptTokens }) => promptTokens)),
        );
      }
      expectCell(
        rowOf(client, arm, level)["max"],
        Math.max(
          ...records.flatMap(({ sentNs, intendedNs }) => (sentNs === undefined ? [] : [(sentNs - intendedNs) / 1e6])),
        ),
      );
    });
  });
});

function spreadMean(records: readonly Line[]): number {
  const steps = inFlightOverTime(records);
  return sum(steps.map(({ counts, ns }) => (Math.max(...counts) - Math.min(...counts)) * ns)) / (END - START);
}

/** Whether a later turn went where the last turn before it that reached a worker went. */
function stayed(line: Line, records: readonly Line[]): boolean[] {
  if (line.turn === 0 || line.worker === undefined) return [];
  const before = records
    .filter(({ session, turn, worker }) => session === line.session && turn < line.turn && worker !== undefined)
    .sort((a, b) => b.turn - a.turn)[0];
  return before === undefined ? [] : [before.worker === line.worker];
}
