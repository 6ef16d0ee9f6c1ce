import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { fileTree } from "../../../test/support/file-tree.ts";
import { requestRecord } from "../../core/request-record.ts";
import { baselineOf, lookUpBaseline } from "../../dashboard/baselines.ts";
import { LEAST_CONCURRENCY, MOST_CONCURRENCY } from "../../dashboard/protocol.ts";
import { serialiseBaselines } from "../../lab/results/baselines.ts";
import { buildCell } from "../../lab/results/build-cell.ts";
import { serialiseResults } from "../../lab/results/results-json.ts";
import type { CellResult, ResultsFile } from "../../lab/results/types.ts";
import { readBaselines, shippedBaselines } from "./baseline-files.ts";
import { baselinesOf } from "./baseline-points.ts";

const MS = 1_000_000;

/** A cell whose requests all have the same TTFT, and half of whose prompts were cached. */
function cell(policy: string, concurrency: number, run: number, ttftMs: number): CellResult {
  const records = Array.from({ length: 100 }, (_, at) => {
    const intendedNs = at * 100 * MS;
    const firstContentNs = intendedNs + ttftMs * MS;
    return requestRecord({
      id: `r${at}`,
      intendedNs,
      sentNs: intendedNs,
      firstContentNs,
      lastContentNs: firstContentNs + 100 * MS,
      endNs: firstContentNs + 100 * MS,
      promptTokens: 400,
      outputTokens: 11,
      observedCachedTokens: 200,
      attempts: 1,
      account: "completed",
    });
  });
  return buildCell({
    arm: policy,
    policy,
    level: { concurrency, workers: 3 },
    run,
    seed: 1,
    records,
    window: { startNs: 0, endNs: 10_000 * MS, drainNs: 1000 * MS },
    slo: {},
    snapshots: 1,
    workers: [],
    cacheCeiling: 1,
  });
}

const RESULTS: ResultsFile = {
  schemaVersion: 1,
  experiment: "mine",
  config: {},
  cells: [
    cell("kv-cost", 80, 1, 300),
    cell("kv-cost", 60, 1, 100),
    cell("kv-cost", 60, 2, 200),
    cell("product", 60, 1, 5),
  ],
};

describe("baselines", () => {
  test("are read from results of a run: means over its runs, levels in order, known policies alone", async () => {
    const folder = fileTree({ "results.json": serialiseResults(RESULTS) });
    const baselines = await readBaselines([join(folder, "results.json")]);
    expect(
      baselines.arms.map(({ role, policy, levels }) => [role, policy, levels.map((one) => one.concurrency)]),
    ).toEqual([["kv", "kv-cost", [60, 80]]]);
    const kv = baselineOf(baselines, "kv");
    expect(lookUpBaseline(kv, "ttftP95Ms", 60)).toMatchObject({ kind: "recorded", value: 150 });
    expect(lookUpBaseline(kv, "ttftP95Ms", 70)).toMatchObject({ kind: "interpolated", value: 225 });
    expect(lookUpBaseline(kv, "hitShare", 60)).toMatchObject({ value: 0.5 });
    expect(lookUpBaseline(kv, "ttftP99Ms", 60).kind).toBe("none");
    expect(baselines.sources).toEqual([{ experiment: "mine", startedAt: null, command: null }]);
  });

  test("are the same when they were condensed before", async () => {
    const folder = fileTree({ "results.json": serialiseResults(RESULTS) });
    const condensed = join(folder, "condensed.json");
    writeFileSync(condensed, serialiseBaselines(baselinesOf(RESULTS, undefined)));
    expect(await readBaselines([condensed])).toEqual(await readBaselines([join(folder, "results.json")]));
  });

  test("that cannot be read are refused in one line that names the file", async () => {
    const folder = fileTree({ "broken.json": "{" });
    await expect(readBaselines([join(folder, "none.json")])).rejects.toThrow(/--baselines .*none\.json: no such file/);
    await expect(readBaselines([join(folder, "broken.json")])).rejects.toThrow(/--baselines .*broken\.json/);
  });

  test("are shipped for the default fleet: three policies over the whole slider, and how they were made", async () => {
    const { arms, sources } = await shippedBaselines("live-demo");
    expect(arms.map(({ role }) => role).sort()).toEqual(["kv", "round-robin", "warmpath"]);
    for (const arm of arms) {
      for (let concurrency = LEAST_CONCURRENCY; concurrency <= MOST_CONCURRENCY; concurrency++) {
        for (const metric of ["ttftP95Ms", "tpotP95Ms", "hitShare", "outputTokensPerSecond"] as const) {
          expect(lookUpBaseline(arm, metric, concurrency).kind, `${arm.role} ${metric} at ${concurrency}`).not.toBe(
            "none",
          );
        }
      }
    }
    expect(sources).toMatchObject([
      { experiment: "live-demo", command: expect.stringContaining("warmpath run live-demo") },
    ]);
  });

  test("of a preset without any are none", async () => {
    expect(await shippedBaselines("nothing-of-the-kind")).toEqual({ sources: [], arms: [] });
  });
});
