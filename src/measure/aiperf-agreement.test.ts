import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { requireData } from "../../test/support/required-component.ts";
import { requestRecord } from "../core/request-record.ts";
import { DurationHistogram } from "./duration-histogram.ts";
import { e2eNs, tpotNs, ttftNs } from "./latencies.ts";
import { addGaps } from "./token-gaps.ts";

const NS_PER_MS = 1_000_000;

interface AiperfLine {
  readonly metrics: Readonly<Record<string, { readonly value: number }>> & {
    readonly inter_chunk_latency: { readonly value: readonly number[] };
  };
}

test("latencies of real requests are those that AIPerf computed from the same chunks", (context) => {
  const path = requireData(context, "aiperf-runs/sample-records/profile_export.jsonl");
  const lines = readFileSync(path, "utf8").trim().split("\n");
  expect(lines.length).toBeGreaterThan(0);
  for (const line of lines) {
    const { metrics } = JSON.parse(line) as AiperfLine;
    let ns = Math.round(metrics["time_to_first_token"].value * NS_PER_MS);
    const times = [ns, ...metrics.inter_chunk_latency.value.map((gapMs) => (ns += Math.round(gapMs * NS_PER_MS)))];
    const record = requestRecord({
      id: "0",
      intendedNs: 0,
      firstContentNs: times[0],
      lastContentNs: times[times.length - 1],
      promptTokens: metrics["input_sequence_length"].value,
      outputTokens: metrics["output_sequence_length"].value,
      account: "completed",
      tokenTimes: { form: "chunks", timesNs: Float64Array.from(times) },
    });
    expect(ttftNs(record)! / NS_PER_MS).toBeCloseTo(metrics["time_to_first_token"].value, 5);
    expect(e2eNs(record)! / NS_PER_MS).toBeCloseTo(metrics["request_latency"].value, 2);
    // AIPerf calls the time per output token its inter-token latency.
    expect(tpotNs(record)! / NS_PER_MS).toBeCloseTo(metrics["inter_token_latency"].value, 4);
    const gaps = new DurationHistogram();
    addGaps(record.tokenTimes!, gaps);
    expect(gaps.count).toBe(metrics.inter_chunk_latency.value.length);
  }
});
