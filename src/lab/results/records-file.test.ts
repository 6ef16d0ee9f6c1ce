import { mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, describe, expect, it } from "vitest";
import { type RequestRecord, requestRecord } from "../../core/request-record.ts";
import { DurationHistogram } from "../../measure/duration-histogram.ts";
import { gapCounts } from "../../measure/token-gaps.ts";
import { Rng } from "../../core/rng.ts";
import { buildCell } from "./build-cell.ts";
import type { CellResult } from "./types.ts";
import type { RecordOfCell } from "./record-line.ts";
import { joinRecordsFiles, readRecords, RecordsWriter } from "./records-file.ts";
import {
  PROVENANCE_FILE,
  readProvenance,
  readResults,
  RECORDS_FILE,
  RESULTS_FILE,
  writeProvenance,
  writeResults,
} from "./store.ts";

const FOLDER = mkdtempSync(join(tmpdir(), "warmpath-records-"));
afterAll(() => rmSync(FOLDER, { recursive: true }));

const COMPLETED = requestRecord({
  id: "r1",
  session: "s",
  turn: 2,
  intendedNs: 5,
  sentNs: 6,
  placedNs: 7,
  firstByteNs: 8,
  firstContentNs: 9,
  lastContentNs: 5_000_000,
  endNs: 5_000_001,
  promptTokens: 10,
  outputTokens: 3,
  predictedCachedTokens: 4,
  observedCachedTokens: 3,
  worker: "w",
  attempts: 2,
  account: "completed",
  decision: "d",
  tokenTimes: { form: "chunks", timesNs: Float64Array.of(9, 100, 5_000_000) },
});
const SHED = requestRecord({
  id: "r2 “ü”",
  intendedNs: 5,
  endNs: 5,
  promptTokens: 10,
  account: "shed",
  shedReason: { code: "deadline", knob: "deadlineNs", value: 2, threshold: 1, retryAfterMs: 5, message: "late" },
});
const FAILED = requestRecord({
  id: "r3",
  intendedNs: 5,
  endNs: 6,
  promptTokens: 1,
  account: "failed",
  failure: { status: 503, message: "busy" },
  tokenTimes: { form: "runs", runs: Float64Array.of(1, 0, 10_000, 5, 7) },
});

async function readAll(path: string): Promise<RecordOfCell[]> {
  const all: RecordOfCell[] = [];
  for await (const entry of readRecords(path)) all.push(entry);
  return all;
}

async function written(name: string, records: readonly RequestRecord[], tokenTimes?: "full" | "none"): Promise<string> {
  const path = join(FOLDER, name);
  const writer = new RecordsWriter(path, tokenTimes === undefined ? {} : { tokenTimes });
  await writer.write("cell", records);
  await writer.close();
  return path;
}

describe("records.jsonl.gz", () => {
  it("gives back every field of every record", async () => {
    const path = await written("full.gz", [COMPLETED, SHED, FAILED], "full");
    expect(await readAll(path)).toEqual([COMPLETED, SHED, FAILED].map((record) => ({ cell: "cell", record })));
  });

  it("keeps gaps alone unless told otherwise, with the statistics they came from", async () => {
    const [{ record }] = await readAll(await written("gaps.gz", [COMPLETED]));
    const gaps = gapCounts(COMPLETED.tokenTimes!, new DurationHistogram());
    expect(record.tokenTimes).toEqual({ form: "gaps", gaps });
    expect((await readAll(await written("none.gz", [COMPLETED], "none")))[0].record.tokenTimes).toBeUndefined();
  });

  it("has equal bytes for equal records", async () => {
    const many = Array.from({ length: 3000 }, (_, i) => ({ ...COMPLETED, id: `r${i}` }));
    const [one, other] = [await written("one.gz", many), await written("other.gz", many)];
    expect(readFileSync(one).equals(readFileSync(other))).toBe(true);
    expect(await readAll(one)).toHaveLength(3000);
  });

  it("joins with others by appending", async () => {
    const path = join(FOLDER, "joined.gz");
    await joinRecordsFiles([await written("a.gz", [COMPLETED]), await written("b.gz", [SHED])], path);
    expect((await readAll(path)).map(({ record }) => record.id)).toEqual(["r1", "r2 “ü”"]);
  });

  it.each([
    ["{", "is not complete JSON"],
    ["[]", "is not an object"],
    ['{"cell":"c"}', "id is missing"],
    ['{"cell":"c","id":"i","turn":"x"}', 'turn must be a number, got "x"'],
  ])("names file and line of the malformed line %s", async (line, problem) => {
    const path = join(FOLDER, "bad.gz");
    const [good] = await readAll(await written("good.gz", [SHED]));
    writeFileSync(path, gzipSync(`${JSON.stringify({ cell: "c", ...good.record })}\n${line}\n`));
    await expect(readAll(path)).rejects.toThrow(`${path}:2: ${problem}`);
  });

  it("says after which line a truncated file ends", async () => {
    const path = await written(
      "cut.gz",
      Array.from({ length: 2000 }, (_, i) => ({ ...COMPLETED, id: `r${i}` })),
    );
    truncateSync(path, readFileSync(path).length - 20);
    await expect(readAll(path)).rejects.toThrow(/cut\.gz: cannot be read after line \d+: unexpected end of file/);
  });

  it("names a file that is not there", async () => {
    await expect(readAll(join(FOLDER, "absent.gz"))).rejects.toThrow(/absent\.gz: cannot be read after line 0: ENOENT/);
  });

  it("fails on close if it could not write", async () => {
    const writer = new RecordsWriter(join(FOLDER, "no-such-folder", "x.gz"));
    await writer.write("cell", [SHED]).catch(() => {});
    await expect(writer.close()).rejects.toThrow(/ENOENT/);
  });
});

it("gives the same cell from the file as from the run", async () => {
  const rng = new Rng(3);
  const records = Array.from({ length: 300 }, (_, i) => {
    const intendedNs = i * 40_000_000;
    let ns = intendedNs + Math.round(rng.uniform() * 3e8);
    const timesNs = Float64Array.from({ length: 1 + rng.below(60) }, () => (ns += Math.round(rng.uniform() * 2e7)));
    return requestRecord({
      ...COMPLETED,
      id: `r${i}`,
      intendedNs,
      sentNs: intendedNs,
      placedNs: intendedNs,
      firstContentNs: timesNs[0],
      lastContentNs: ns,
      endNs: ns,
      outputTokens: timesNs.length,
      account: rng.uniform() < 0.1 ? "failed" : "completed",
      tokenTimes: { form: "chunks", timesNs },
    });
  });
  const cellOf = (from: readonly RequestRecord[]): CellResult =>
    buildCell({
      arm: "a",
      policy: "p",
      level: { speed: 1, workers: 1 },
      run: 1,
      seed: 1,
      records: from,
      window: { startNs: 1e9, endNs: 1e10, drainNs: 5e8 },
      slo: { ttftMs: 200 },
      snapshots: 3,
      workers: [],
      cacheCeiling: "unavailable",
    });
  const read = await readAll(await written("cell.gz", records));
  expect(cellOf(read.map(({ record }) => record))).toEqual(cellOf(records));
});

it("writes a results folder and reads it back, and names a missing one", async () => {
  const folder = join(FOLDER, "new", "folder");
  const results = { schemaVersion: 1, experiment: "x", config: {}, cells: [] } as const;
  const provenance = {
    schemaVersion: 1,
    host: {},
    versions: {},
    startedAt: "2026-01-01T00:00:00Z",
    finishedAt: "2026-01-01T00:00:01Z",
    command: "x",
    cellSeconds: {},
  } as const;
  await writeResults(folder, results);
  await writeProvenance(folder, provenance);
  await written(join("new", "folder", RECORDS_FILE), [SHED]);
  expect(await readResults(folder)).toEqual({ content: results, problems: [] });
  expect(await readProvenance(folder)).toEqual({ content: provenance, problems: [] });
  expect(readdirSync(folder).sort()).toEqual([PROVENANCE_FILE, RECORDS_FILE, RESULTS_FILE].sort());
  const { content, problems } = await readResults(join(FOLDER, "absent"));
  expect(content).toBeUndefined();
  expect(problems).toEqual([expect.stringMatching(/absent.results\.json: cannot be read \(ENOENT\)/)]);
});
