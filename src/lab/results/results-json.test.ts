import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { requestRecord, type RequestRecord } from "../../core/request-record.ts";
import { Rng } from "../../core/rng.ts";
import { buildCell, cellId, type CellInput } from "./build-cell.ts";
import { parseProvenance, parseResults, serialiseProvenance, serialiseResults } from "./results-json.ts";
import type { CellResult, ResultsFile, WorkerStats } from "./types.ts";

const MS = 1_000_000;
const SECOND = 1000 * MS;

const stats = (worker: string): WorkerStats => ({
  worker,
  busyShare: 1 / 3,
  queueMax: 4,
  kvOccupancy: 0.5,
  kvOccupancyMax: 0.9,
  evictions: 17,
  preemptions: 0,
  draftAcceptance: "unavailable",
});

function records(count: number, seed = 1): RequestRecord[] {
  const rng = new Rng(seed);
  return Array.from({ length: count }, (_, i) => {
    const intendedNs = i * 50 * MS;
    const isShed = rng.uniform() < 0.02;
    if (isShed)
      return requestRecord({ id: `r${i}`, intendedNs, endNs: intendedNs, promptTokens: 500, account: "shed" });
    const firstContentNs = intendedNs + Math.round(100 * MS * (1 + rng.uniform()));
    const timesNs = Float64Array.from({ length: 20 }, (__, token) => firstContentNs + token * 10 * MS);
    return requestRecord({
      id: `r${i}`,
      intendedNs,
      sentNs: intendedNs,
      placedNs: intendedNs + MS,
      firstContentNs,
      lastContentNs: timesNs[19],
      endNs: timesNs[19] + MS,
      promptTokens: 400,
      outputTokens: 20,
      predictedCachedTokens: 200,
      observedCachedTokens: 192,
      worker: i % 2 === 0 ? "a" : "b",
      attempts: 1,
      account: "completed",
      tokenTimes: { form: "chunks", timesNs },
    });
  });
}

const input = (overrides: Partial<CellInput> = {}): CellInput => ({
  arm: "kv",
  policy: "kv-cost",
  level: { rateRps: 20, workers: 2 },
  run: 1,
  seed: 7,
  records: records(2000),
  window: { startNs: 10 * SECOND, endNs: 90 * SECOND, drainNs: 5 * SECOND },
  slo: { ttftMs: 190, tpotMs: 20 },
  snapshots: 3,
  workers: [stats("a"), stats("b")],
  cacheCeiling: 0.6,
  ...overrides,
});

const file = (cells: CellResult[]): ResultsFile => ({
  schemaVersion: 1,
  experiment: "test",
  config: { zeta: 1, alpha: { b: [1, { y: 1, x: 2 }], a: null } },
  cells,
});

describe("a cell", () => {
  const cell = buildCell(input());

  it("has every measure of its window", () => {
    expect(cell.id).toBe("kv/rate-20-workers-2/run-1");
    expect(cell.accounting.offered).toBe(1600);
    expect(cell.accounting.completed + cell.accounting.shed).toBe(1600);
    expect(cell.ttftMs.completed.p50).toBeCloseTo(150, -1);
    expect(cell.ttftMs.offered.states).toMatchObject({ mean: "not-reached", p95: "ok", p99: "not-reached" });
    expect(cell.tpotMs.completed.p99).toBe(10);
    expect(cell.itlMs.completed).toMatchObject({ n: 19 * cell.accounting.completed, mean: 10 });
    expect(cell.cache).toMatchObject({ ceiling: 0.6, predicted: 0.5, observed: 0.48 });
    expect(cell.outputTokensPerSecond).toBeCloseTo(20 * cell.requestsPerSecond, 0);
    expect(cell.offeredPerSecond).toBe(20);
    expect(cell.workers[0]).toMatchObject({ worker: "a", busyShare: 0.333333, evictions: 17 });
    expect((cell.workers[0].share as number) + (cell.workers[1].share as number)).toBeCloseTo(1, 5);
    expect(cell.inflightSpread).toMatchObject({ max: expect.any(Number) });
    expect(cell.slo.verdict).toBe("missed");
    expect(cell.goodputShare).toBeGreaterThan(0.8);
    expect(cell.snapshots).toHaveLength(3);
    expect(cell.snapshotMeans?.ttftMs.completed.p95).toBeCloseTo(cell.ttftMs.completed.p95!, -1);
    expect(cell.refusals).toEqual([
      { account: "shed", status: null, code: null, message: "", count: cell.accounting.shed },
    ]);
    expect(cell.saturated).toBe(false);
  });

  it("is refused if a record got lost on the way, naming the difference", () => {
    expect(() => buildCell(input({ offered: 1603 }))).toThrow(
      /kv\/rate-20.* do not add up: 1603 offered.*3 in no account/,
    );
    expect(buildCell(input({ offered: 1600 })).accounting.offered).toBe(1600);
  });

  it("has no numbers where there is nothing to measure, and never NaN", () => {
    const empty = buildCell(input({ records: [] }));
    expect(empty.ttftMs.completed).toMatchObject({ n: 0, mean: null, p50: null });
    expect(empty.promptTokensMean).toBeNull();
    expect(() => serialiseResults(file([empty]))).not.toThrow();
  });

  it("says unavailable for what a foreign target does not tell", () => {
    const foreign = records(100).map((record) => ({
      ...record,
      worker: "unavailable",
      predictedCachedTokens: "unavailable" as const,
      observedCachedTokens: "unavailable" as const,
      tokenTimes: undefined,
    }));
    const window = { startNs: 0, endNs: 5 * SECOND, drainNs: SECOND };
    const found = buildCell(input({ records: foreign, window, cacheCeiling: "unavailable", workers: [] }));
    expect(found.inflightSpread).toBe("unavailable");
    expect(found.cache).toMatchObject({ ceiling: "unavailable", predicted: "unavailable", observed: "unavailable" });
    expect(found.itlMs.completed).toMatchObject({ n: 0, p50: null });
    expect(found.requestsWithoutGaps).toBe(found.accounting.completed);
    expect(parseResults(serialiseResults(file([found])), "x").problems).toEqual([]);
  });

  it("is named by whatever drove it", () => {
    expect(cellId("rr", { concurrency: 60, workers: 3 }, 2)).toBe("rr/concurrency-60-workers-3/run-2");
    expect(cellId("rr", { speed: 0.8, workers: 8 }, 1)).toBe("rr/speed-0.8-workers-8/run-1");
  });
});

describe("results.json", () => {
  const cell = buildCell(input());

  it("comes back as it was written", () => {
    const { content, problems } = parseResults(serialiseResults(file([cell])), "results.json");
    expect(problems).toEqual([]);
    expect(content).toEqual(file([cell]));
  });

  it("has equal bytes for equal results, whatever order keys were made in", () => {
    const reversed = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(reversed);
      if (typeof value !== "object" || value === null) return value;
      return Object.fromEntries(
        Object.entries(value)
          .toReversed()
          .map(([key, inner]) => [key, reversed(inner)]),
      );
    };
    const text = serialiseResults(file([cell]));
    expect(serialiseResults(reversed(file([cell])) as ResultsFile)).toBe(text);
    expect(serialiseResults(file([buildCell(input())]))).toBe(text);
    expect(text.startsWith('{\n  "schemaVersion": 1,\n  "experiment": "test",\n  "config": {\n    "alpha"')).toBe(true);
  });

  it("keeps what a later version adds to a cell", () => {
    const extended = { ...cell, gpu: { watts: 700 } } as CellResult;
    expect(parseResults(serialiseResults(file([extended])), "x").content?.cells[0]).toEqual(extended);
  });

  it("is never written with a number that JSON cannot say", () => {
    const broken = { ...cell, requestsPerSecond: Number.NaN };
    expect(() => serialiseResults(file([broken]))).toThrow(/cells\[0\]\.requestsPerSecond/);
    const endless = { ...cell, requestsPerSecond: Infinity };
    expect(() => serialiseResults(file([endless]))).toThrow(/cells\[0\]\.requestsPerSecond/);
  });

  it("names each problem of a damaged file in one line and gives the cells that are whole", () => {
    const json = JSON.parse(serialiseResults(file([cell, cell])));
    json.cells[1].accounting.shed += 2;
    json.cells[1].ttftMs.completed.p50 = null;
    json.cells[1].cache.observed = "none";
    json.cells[1].run = -1;
    delete json.cells[1].saturated;
    const { content, problems } = parseResults(JSON.stringify(json), "dir/results.json");
    expect(content?.cells).toHaveLength(1);
    expect(problems.toSorted()).toEqual([
      expect.stringMatching(
        /^dir\/results\.json: cells\[1\]\.accounting must add up: 1600 offered, 1602 in all accounts$/,
      ),
      'dir/results.json: cells[1].cache.observed must be a number of the right size or "unavailable", got "none"',
      "dir/results.json: cells[1].run must be 0 or more, got -1",
      "dir/results.json: cells[1].saturated is missing",
      "dir/results.json: cells[1].ttftMs.completed.p50 must be a number exactly if its state is ok, and the state is ok",
    ]);
  });

  it("tells a truncated, a foreign and a newer file apart", () => {
    const text = serialiseResults(file([cell]));
    expect(parseResults(text.slice(0, 300), "r").problems).toEqual([
      expect.stringMatching(/^r: is not complete JSON: /),
    ]);
    expect(parseResults("{}", "r").problems).toEqual(["r: is not a results file of Warmpath: it has no schemaVersion"]);
    const newer = text.replace('"schemaVersion": 1', '"schemaVersion": 2');
    expect(parseResults(newer, "r").problems).toEqual([
      "r: has schemaVersion 2, and this version of Warmpath reads up to 1",
    ]);
    expect(parseResults('{"schemaVersion":1,"cells":3}', "r").problems).toEqual([
      "r: experiment is missing",
      "r: config is missing",
      "r: cells must be a list, got 3",
    ]);
  });
});

it("keeps provenance apart, with dates checked", () => {
  const provenance = {
    schemaVersion: 1,
    host: { cpus: 2 },
    versions: { warmpath: "0.1.0" },
    startedAt: "2026-01-01T00:00:00Z",
    finishedAt: null,
    command: "warmpath run x",
    cellSeconds: { "kv/rate-20-workers-2/run-1": 1.5 },
  } as const;
  expect(parseProvenance(serialiseProvenance(provenance), "p")).toEqual({ content: provenance, problems: [] });
  const wrong = JSON.stringify({ ...provenance, startedAt: "yesterday" });
  expect(parseProvenance(wrong, "p").problems).toEqual(['p: startedAt must be a datetime, got "yesterday"']);
});

it("has every field explained in the reference", () => {
  const reference = readFileSync(new URL("../../../docs/reference/results.md", import.meta.url), "utf8");
  const cell = buildCell(input());
  const record = records(1)[0];
  const parts = [
    file([cell]),
    cell,
    cell.window,
    cell.accounting,
    cell.cache,
    cell.workers[0],
    cell.stationarity,
    record,
  ];
  const names = parts.flatMap((part) => Object.keys(part));
  const missing = names.filter((name) => !new RegExp(`\\b${name}\\b`).test(reference));
  expect(missing).toEqual([]);
});
