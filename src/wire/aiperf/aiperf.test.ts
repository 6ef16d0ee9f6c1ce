import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { requireData } from "../../../test/support/required-component.ts";
import { requestRecord, UNAVAILABLE } from "../../core/request-record.ts";
import { parseAiperfCsv, writeAiperfCsv } from "./csv.ts";
import { accountOfError, parseAiperfError } from "./error.ts";
import { parseAiperfInputs } from "./inputs-file.ts";
import { AiperfRecordReader } from "./record-line.ts";
import { type AiperfSummary, parseAiperfSummary, writeAiperfSummary } from "./summary-file.ts";
import { writeAiperfLine } from "./write-record.ts";

function summaryOf(text: string): AiperfSummary {
  const parsed = parseAiperfSummary(text);
  if (!parsed.ok) throw new Error(parsed.problem);
  return parsed.summary;
}

const RECORD = requestRecord({
  id: "r-7",
  session: "c-1",
  turn: 2,
  intendedNs: 5_000_000,
  sentNs: 5_250_001,
  placedNs: 6_000_000,
  firstByteNs: 8_000_000,
  firstContentNs: 9_123_457,
  lastContentNs: 30_000_003,
  endNs: 31_000_000,
  promptTokens: 812,
  outputTokens: 4,
  predictedCachedTokens: 512,
  observedCachedTokens: 448,
  worker: "worker-3",
  attempts: 1,
  account: "completed",
  tokenTimes: { form: "chunks", timesNs: Float64Array.of(9_123_457, 12_000_000, 30_000_003) },
});
const CONTEXT = {
  originNs: 1_780_000_000_000_000_001n,
  sessionNumber: 4,
  isWarmUp: false,
  chunkGapsMs: [2.876543, 18.000003],
};

describe("a summary of AIPerf", () => {
  test("with real 503s is read with its counts, percentiles and errors", (context) => {
    const summary = summaryOf(
      readFileSync(requireData(context, "aiperf-runs/a100-n2/on/run_1/profile_export_aiperf.json"), "utf8"),
    );
    expect(summary.schemaVersion).toBe("1.1");
    expect(summary.metrics.get("request_count")?.avg).toBe(897);
    expect(summary.metrics.get("time_to_first_token")?.percentiles).toContainEqual([0.5, 5032.957855]);
    const [group] = summary.errors;
    expect(group).toEqual({
      count: 103,
      error: {
        code: 503,
        type: "Service Unavailable",
        message: "ResourceExhausted: All workers are busy, please retry later",
      },
    });
    expect(accountOfError(group.error)).toBe("shed");
  });

  test("without schema version, with nulls and with GPUs is read too", (context) => {
    const summary = summaryOf(
      readFileSync(requireData(context, "aiperf-runs/sample-records/profile_export_aiperf.json"), "utf8"),
    );
    expect(summary.schemaVersion).toBeUndefined();
    expect(summary.metrics.has("goodput")).toBe(false);
    expect(summary.errors).toEqual([]);
    expect(summary.gpus.length).toBeGreaterThan(0);
    expect(summary.gpus[0].metrics.get("gpu_utilization")?.unit).toBe("%");
  });

  test("that we write is one that we read", () => {
    const metrics = new Map([
      ["request_count", { unit: "requests", avg: 3, percentiles: [] }],
      [
        "time_to_first_token",
        { unit: "ms", avg: 2.5, min: 1, max: 4, std: 1.5, count: 3, sum: 7.5, percentiles: [[0.5, 2.25]] as const },
      ],
    ]);
    const error = { code: 503, type: "Service Unavailable", message: "all workers are busy" };
    const text = writeAiperfSummary({
      benchmarkId: "kv/run-1",
      metrics,
      inputConfig: { loadgen: { concurrency: 8 } },
      errors: [{ error, count: 2 }],
      startTime: "2026-06-05T20:20:34.397",
      endTime: "2026-06-05T20:24:34.397",
      warmpath: { arm: "kv" },
    });
    const read = summaryOf(text);
    expect(read.metrics.get("time_to_first_token")).toEqual(metrics.get("time_to_first_token"));
    expect(read.inputConfig).toEqual({ loadgen: { concurrency: 8 } });
    expect(read.errors).toEqual([{ error, count: 2 }]);
  });

  test("that is cut off or is something else is one line", () => {
    expect(parseAiperfSummary('{"request_count":')).toMatchObject({
      ok: false,
      problem: expect.stringMatching(/^is not complete JSON/),
    });
    expect(parseAiperfSummary('{"cells":[]}')).toMatchObject({
      ok: false,
      problem: expect.stringMatching(/neither request_count/),
    });
    expect(parseAiperfSummary("[]")).toMatchObject({ ok: false });
  });
});

describe("a record of AIPerf", () => {
  test("of a real run has AIPerf's own latencies, and no backend worker", (context) => {
    const path = requireData(context, "aiperf-runs/sample-records/profile_export.jsonl");
    const reader = new AiperfRecordReader();
    const lines = readFileSync(path, "utf8").trim().split("\n");
    const records = lines.map((line) => {
      const read = reader.read(line);
      if (!read.ok) throw new Error(read.problem);
      return read.record;
    });
    expect(records).toHaveLength(10);
    expect(records[0].intendedNs).toBe(0);
    for (const [at, record] of records.entries()) {
      const { metrics } = JSON.parse(lines[at]) as { metrics: Record<string, { value: number }> };
      expect(((record.firstContentNs ?? 0) - (record.sentNs ?? 0)) / 1e6).toBeCloseTo(
        metrics["time_to_first_token"].value,
        5,
      );
      expect(record.worker).toBe(UNAVAILABLE);
      expect(record.account).toBe("completed");
    }
    // Starts lie seconds apart, and are exact to the nanosecond although they are beyond what a number holds.
    const [first, second] = lines.slice(0, 2).map((line) => BigInt(/"request_start_ns": (\d+)/.exec(line)?.[1] ?? "0"));
    expect(records[1].sentNs).toBe(Number(second - first));
  });

  test("that we write is the record that we read", () => {
    const read = new AiperfRecordReader().read(writeAiperfLine(RECORD, CONTEXT));
    if (!read.ok) throw new Error(read.problem);
    // The reader's clock starts at the first intended send.
    const shift = RECORD.intendedNs;
    const moved = (ns: number | undefined): number | undefined => (ns === undefined ? undefined : ns - shift);
    expect(read.isWarmUp).toBe(false);
    expect(read.record).toEqual({
      ...RECORD,
      intendedNs: 0,
      sentNs: moved(RECORD.sentNs),
      placedNs: moved(RECORD.placedNs),
      firstByteNs: moved(RECORD.firstByteNs),
      firstContentNs: moved(RECORD.firstContentNs),
      lastContentNs: moved(RECORD.lastContentNs),
      endNs: moved(RECORD.endNs),
      tokenTimes: { form: "chunks", timesNs: Float64Array.of(4_123_457, 7_000_000, 25_000_003) },
    });
  });

  test("of a request that was turned away keeps its account, length and worker", () => {
    const shed = requestRecord({
      id: "r-8",
      intendedNs: 0,
      endNs: 1000,
      promptTokens: 900,
      account: "shed",
      shedReason: {
        code: "overloaded",
        knob: "prefillTokens",
        value: 5,
        threshold: 4,
        retryAfterMs: 10,
        message: "busy: prefillTokens 5 > 4",
      },
    });
    const line = writeAiperfLine(shed, { ...CONTEXT, chunkGapsMs: undefined });
    expect(JSON.parse(line)).toMatchObject({
      metrics: { error_isl: { value: 900, unit: "tokens" } },
      error: { code: 429, message: "busy: prefillTokens 5 > 4" },
      metadata: { worker_id: "warmpath" },
    });
    const read = new AiperfRecordReader().read(line);
    expect(read).toMatchObject({
      ok: true,
      record: { account: "shed", promptTokens: 900, worker: undefined, sentNs: undefined },
    });
  });

  test("that is cut off is one line", () => {
    expect(new AiperfRecordReader().read('{"metadata":{')).toEqual({ ok: false, problem: "is not complete JSON" });
    expect(new AiperfRecordReader().read("{}")).toMatchObject({ ok: false });
  });
});

describe("an error", () => {
  test.each([
    [429, "Too Many Requests", "", "shed"],
    [503, "Service Unavailable", "All workers are busy", "shed"],
    [529, "", "router backpressure: queued_isl_tokens=12", "shed"],
    [503, "Service Unavailable", "upstream connect error", "failed"],
    [500, "Internal Server Error", "workers are busy", "failed"],
    [504, "Gateway Timeout", "", "timedOut"],
    [undefined, "TimeoutError", "", "timedOut"],
    [499, "RequestCancellationError", "cancelled after 3 s", "cancelled"],
    [undefined, "ClientConnectorError", "connection refused", "failed"],
  ])("%s %s %s is %s", (code, type, message, account) => {
    expect(accountOfError({ code, type, message })).toBe(account);
  });

  test("with a body of JSON is read as what it says", () => {
    expect(parseAiperfError({ code: 503, message: '{"error":{"message":"no room"}}' })?.message).toBe("no room");
    expect(parseAiperfError({ code: 503, message: "{broken" })?.message).toBe("{broken");
    expect(parseAiperfError(null)).toBeUndefined();
  });
});

test("a table that we write is one that we read, and tables of GPUs are left alone", () => {
  const text = writeAiperfCsv(
    new Map([
      [
        "time_to_first_token",
        { unit: "ms", avg: 12.346, min: 1, max: 20, count: 3, sum: 37, percentiles: [[0.5, 11]] as const },
      ],
      ["request_count", { unit: "requests", avg: 3, percentiles: [] }],
    ]),
  );
  const rows = parseAiperfCsv(`${text}\n\nEndpoint,GPU_Index,Metric,avg\nlocalhost,0,Power,5\n`);
  expect(rows.map(({ title, unit }) => [title, unit])).toEqual([
    ["Time to First Token", "ms"],
    ["Request Count", undefined],
  ]);
  expect(rows[0].values.get("avg")).toBe(12.35);
  expect(rows[0].values.get("p50")).toBe(11);
  expect(rows[0].values.has("p99")).toBe(false);
  expect(rows[1].values.get("Value")).toBe(3);
});

test("prompts are the same whatever ids AIPerf drew for their sessions", () => {
  const inputs = (id: string): string[] | undefined => {
    const parsed = parseAiperfInputs(
      JSON.stringify({ data: [{ session_id: id, payloads: [{ model: "m" }, { model: "n" }] }] }),
    );
    return parsed === undefined ? undefined : [...parsed.payloads, String(parsed.sessions), String(parsed.requests)];
  };
  expect(inputs("a")).toEqual(inputs("b"));
  expect(inputs("a")).toHaveLength(4);
  expect(parseAiperfInputs("[]")).toBeUndefined();
});
