import { expect, test } from "vitest";
import { accountingOf, cellOf, latencyOf, levelOf } from "../cells.test-support.ts";
import type { ArmComparison, LevelComparison } from "../comparisons.ts";
import type { ReportModel } from "../model.ts";
import type { Outcome } from "../verdict.ts";
import { verdictSection } from "./verdict.ts";

/** What the table of differences says of a p95 that one arm reached and the other did not. */
function said(baselineP95: number, armP95: number, outcome: Outcome): string | undefined {
  const cell = (arm: string, p95: number): ReturnType<typeof cellOf> =>
    cellOf(arm, { accounting: accountingOf(990), latencies: { ttftMs: latencyOf({ p95 }) } });
  const level = levelOf(cell("rr", baselineP95), cell("kv", armP95));
  const differences = level.differences.map((difference) => ({ ...difference, outcome }));
  const levels: LevelComparison[] = [{ ...level, differences }];
  const model: Partial<ReportModel> = {
    baseline: "rr",
    levels: [level.level],
    arms: [],
    slo: {},
    groups: [],
    comparisons: [{ arm: "kv", baseline: "rr", levels, missing: [] } as unknown as ArmComparison],
  };
  const { blocks } = verdictSection(model as ReportModel);
  const table = blocks.find((block) => block.kind === "table" && block.title.startsWith("Change of kv"));
  if (table?.kind !== "table") throw new Error("no table");
  return table.rows[0][table.columns.findIndex(({ title }) => title === "TTFT p95")];
}

test("a latency that one arm did not reach is called worse or better only where that is shown", () => {
  expect(said(90, Infinity, "worse")).toBe("**worse**: not reached");
  expect(said(90, Infinity, "no-difference-shown")).toBe("not reached, not shown");
  expect(said(Infinity, 90, "better")).toBe("better: the baseline's is not reached");
  expect(said(Infinity, 90, "no-difference-shown")).toBe("the baseline's is not reached, not shown");
});
