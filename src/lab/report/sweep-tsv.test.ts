import { expect, test } from "vitest";
import { cellOf, latencyOf } from "./cells.test-support.ts";
import type { ReportModel } from "./model.ts";
import { sweepTsv } from "./sweep-tsv.ts";

function linesOf(...cells: ReportModel["cells"]): string[][] {
  return sweepTsv({ cells } as ReportModel)
    .replace(/\n$/, "")
    .split("\n")
    .map((line) => line.split("\t"));
}

test("a run without snapshots is one line, and what is not known is empty", () => {
  const rates = { ...cellOf("x").rates, requestsPerSecondOverSpan: 2.5 };
  const latencies = { ttftMs: latencyOf({ p50: 12.34, p95: Infinity }) };
  const [head, row] = linesOf(cellOf("kv", { rates, latencies, run: 3, level: { rateRps: 4, workers: undefined } }));
  expect(head.slice(0, 8)).toEqual([
    "mode",
    "concurrency",
    "snapshot",
    "p50",
    "p95",
    "hit_rate",
    "rps",
    "tokens_per_s",
  ]);
  expect(row).toEqual(["kv", "4", "all", "12.3", "", "", "2.500", "", "3", ""]);
});
