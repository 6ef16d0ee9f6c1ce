/**
 * Every table of a report again, from the lines of records.jsonl.gz alone and with none of the code that made it: sorted
 * lists, plain sums and brute force. A number that cannot be found again here could not be trusted in a report.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import pc from "picocolors";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { runCli } from "../../program.ts";
import { type ReadTable, sectionOf, tablesOf } from "./markdown-tables.test-support.ts";

const EXPERIMENT = `
name: recomputed
fleet: { model: qwen3-8b, gpu: h100, workers: 3, engine: { profile: vllm }, blockTokens: 64, kvPoolTokens: 40000 }
workload:
  conversations: { starters: 3, starterTokens: [600, 900], outputTokensByTurn: [1, 40], tailShare: 0 }
load: { concurrency: [6, 24] }
arms:
  - { name: rr, policy: round-robin }
  - { name: kv, policy: kv-cost, admission: { mode: shed, watermarks: { kvBlocksFraction: 0.02 } } }
warmUpSeconds: 2
windowSeconds: 10
drainSeconds: 5
snapshots: 2
runs: 2
slo: { ttftMs: 40 }
`;

interface Line {
  readonly cell: string;
  readonly id: string;
  readonly session?: string;
  readonly turn: number;
  readonly intendedNs: number;
  readonly sentNs?: number;
  readonly placedNs?: number;
  readonly firstContentNs?: number;
  readonly lastContentNs?: number;
  readonly endNs?: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
  readonly predictedCachedTokens: number | "unavailable";
  readonly observedCachedTokens: number | "unavailable";
  readonly worker?: string;
  readonly account: string;
  readonly tokenTimes?: { readonly gaps: { readonly bucketCounts: readonly number[]; readonly sumNs: number } };
}

const START = 2e9;
const END = 12e9;
const LAST = 17e9;
let folder = "";
let markdown = "";
let lines: Line[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "warmpath-recompute-"));
  writeFileSync(join(folder, "experiment.yaml"), EXPERIMENT);
  const terminal = {
    colours: pc.createColors(false),
    debug: false,
    print: () => {},
    printError: (line: string) => {
      throw new Error(line);
    },
    readStdin: () => Promise.resolve(""),
  };
  await runCli(["run", join(folder, "experiment.yaml"), "--out", join(folder, "results"), "--threads", "1"], terminal);
  await runCli(["report", join(folder, "results"), "--out", join(folder, "report"), "--format", "md"], terminal);
  markdown = readFileSync(join(folder, "report/report.md"), "utf8");
  const text = gunzipSync(readFileSync(join(folder, "results/records.jsonl.gz"))).toString("utf8");
  lines = text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Line);
}, 60_000);

afterAll(() => rmSync(folder, { recursive: true }));

/** A cell of a table holds a value if it is what the value is rounded to. */
function expectCell(cell: string, value: number): void {
  const [, sign = "", digits = ""] = /^([−+]?)([\d,]+(?:\.\d+)?)/.exec(cell) ?? [];
  expect(digits, `"${cell}" should be ${value}`).not.toBe("");
  const decimals = digits.split(".")[1]?.length ?? 0;
  const written = Number(digits.replaceAll(",", "")) * (sign === "−" ? -1 : 1);
  expect(Math.abs(written - value), `"${cell}" should be ${value}`).toBeLessThanOrEqual(0.5 * 10 ** -decimals + 1e-6);
}

const LEVELS = ["6", "24"];
const ARMS = ["rr", "kv"];
const RUNS = [1, 2];

function all(arm: string, level: string, run: number): Line[] {
  return lines.filter(({ cell }) => cell === `${arm}/concurrency-${level}-workers-3/run-${run}`);
}

function windowOf(records: readonly Line[], from = START, to = END): Line[] {
  return records.filter(({ intendedNs }) => intendedNs >= from && intendedNs < to);
}

function pooled(arm: string, level: string): Line[] {
  return RUNS.flatMap((run) => windowOf(all(arm, level, run)));
}

function isCompleted({ account, endNs }: Line): boolean {
  return account === "completed" && endNs !== undefined && endNs <= LAST;
}

const ttft = (line: Line): number => (line.firstContentNs! - line.intendedNs) / 1e6;
const e2e = (line: Line): number => (line.lastContentNs! - line.intendedNs) / 1e6;
const tpot = (line: Line): number => (line.lastContentNs! - line.firstContentNs!) / 1e6 / (line.outputTokens - 1);

function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const position = share * (sorted.length - 1);
  const [low, high] = [sorted[Math.floor(position)], sorted[Math.ceil(position)]];
  return high === low ? low : low + (high - low) * (position - Math.floor(position));
}

function mean(values: readonly number[]): number {
  return sum(values) / values.length;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function tables(section: string): ReadTable[] {
  return tablesOf(sectionOf(markdown, section));
}

function tableIn(section: string, title: RegExp): ReadTable {
  const found = tables(section).find((one) => title.test(one.title));
  if (found === undefined)
    throw new Error(
      `no table ${title} in ${section}: ${tables(section)
        .map((one) => one.title)
        .join(" / ")}`,
    );
  return found;
}

function eachGroup(check: (arm: string, level: string, records: readonly Line[]) => void): void {
  for (const level of LEVELS) for (const arm of ARMS) check(arm, level, pooled(arm, level));
}

function rowOf(table: ReadTable, arm: string, level: string): Record<string, string> {
  const row = table.rows.find((one) => one["Arm"] === arm && one[table.columns[0]] === level);
  if (row === undefined) throw new Error(`no row of ${arm} at ${level} in ${table.title}`);
  return row;
}

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
      for (const [name, share] of [
        ["p50", 0.5],
        ["p95", 0.95],
      ] as const) {
        expectCell(row[`rr ${name} (ms)`], of("rr", share));
        expectCell(row[`kv ${name} (ms)`], of("kv", share));
        expectCell(row[`${name} Δ`], 100 * (1 - of("kv", share) / of("rr", share)));
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
      expectCell(row["Tokens/s in the window"], mean(runs.map((run) => sum(run.map(tokensInWindow)) / 10)));
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

/** Tokens that fell into the window, taken to come evenly between the first and the last. */
function tokensInWindow({ firstContentNs, lastContentNs, outputTokens }: Line): number {
  if (firstContentNs === undefined || lastContentNs === undefined) return 0;
  const before = (ns: number): number => {
    if (ns <= firstContentNs) return 0;
    if (ns > lastContentNs) return outputTokens;
    return 1 + ((outputTokens - 1) * (ns - firstContentNs)) / (lastContentNs - firstContentNs);
  };
  return before(END) - before(START);
}

function spreadMean(records: readonly Line[]): number {
  const workers = ["worker-0", "worker-1", "worker-2"];
  const edges = [...new Set(records.flatMap(({ placedNs, endNs }) => [placedNs ?? 0, endNs ?? 0]))]
    .filter((ns) => ns > START && ns < END)
    .concat(START, END)
    .sort((a, b) => a - b);
  let total = 0;
  for (let i = 1; i < edges.length; i++) {
    const middle = (edges[i - 1] + edges[i]) / 2;
    const counts = workers.map(
      (name) =>
        records.filter(
          ({ worker, placedNs, endNs }) => worker === name && placedNs! <= middle && (endNs ?? Infinity) > middle,
        ).length,
    );
    total += (Math.max(...counts) - Math.min(...counts)) * (edges[i] - edges[i - 1]);
  }
  return total / (END - START);
}

/** Whether a later turn went where the last turn before it that reached a worker went. */
function stayed(line: Line, records: readonly Line[]): boolean[] {
  if (line.turn === 0 || line.worker === undefined) return [];
  const before = records
    .filter(({ session, turn, worker }) => session === line.session && turn < line.turn && worker !== undefined)
    .sort((a, b) => b.turn - a.turn)[0];
  return before === undefined ? [] : [before.worker === line.worker];
}
