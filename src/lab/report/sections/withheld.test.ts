import { describe, expect, test } from "vitest";
import { Rng } from "../../../core/rng.ts";
import { comparePaired } from "../../../measure/paired.ts";
import { accountingOf, cellOf, latencyOf, levelOf } from "../cells.test-support.ts";
import type { ArmComparison, LevelComparison } from "../comparisons.ts";
import type { Block, Section } from "../document.ts";
import type { ReportModel } from "../model.ts";
import type { VerdictKind } from "../verdict.ts";
import { pairedSection } from "./paired.ts";
import { summarySection } from "./summary.ts";
import { throughputSection } from "./throughput.ts";

/** An arm that is quicker with what it completed, at a level with the given verdict. */
function levelWith(concurrency: number, kind: VerdictKind): LevelComparison {
  const cell = (arm: string, p50: number): ReturnType<typeof cellOf> =>
    cellOf(arm, {
      level: { concurrency, workers: 2 },
      accounting: accountingOf(900),
      latencies: { ttftMs: latencyOf({ p50, p95: 2 * p50 }) },
    });
  const values = { baseline: new Float64Array(100).fill(90), treatment: new Float64Array(100).fill(30), unpaired: 0 };
  const pairs = comparePaired([values], new Rng(1));
  return {
    ...levelOf(cell("rr", 90), cell("kv", 30)),
    paired: { ttft: pairs, e2e: pairs, bands: [], unlike: 0 },
    verdict: { kind, reasons: [] },
  };
}

/** The same, with what arms served in the window, where that is known, and over the span. */
function servedAt(
  level: LevelComparison,
  window: readonly (number | undefined)[],
  span: readonly number[],
): LevelComparison {
  const [baseline, arm] = [level.baseline, level.arm].map((group, at) => ({
    ...group,
    rates: { ...group.rates, outputTokensPerSecond: window[at], outputTokensPerSecondOverSpan: span[at] },
  }));
  return { ...level, baseline, arm };
}

function modelOf(...levels: readonly LevelComparison[]): ReportModel {
  const comparison: Partial<ArmComparison> = { arm: "kv", baseline: "rr", levels };
  const model: Partial<ReportModel> = {
    baseline: "rr",
    levels: levels.map(({ level }) => level),
    arms: [],
    comparisons: [comparison as ArmComparison],
  };
  return model as ReportModel;
}

function rowsOf({ blocks }: Section): readonly (readonly string[])[] {
  const found = blocks.find((block): block is Extract<Block, { kind: "table" }> => block.kind === "table");
  return found?.rows ?? [];
}

const valueOf = (section: Section, metric: string): string | undefined =>
  rowsOf(section).find(([name]) => name.startsWith(metric))?.[1];

describe("what cannot be compared is not praised", () => {
  test("the summary tells gains only of levels that can be compared, and names the others", () => {
    const section = summarySection(
      modelOf(levelWith(4, "traded"), levelWith(8, "better"), levelWith(9, "not-comparable")),
    );
    expect(valueOf(section, "Left out")).toBe("concurrency 4: completeness traded; concurrency 9: not comparable");
    expect(valueOf(section, "Peak TTFT p50 improvement")).toBe("+66.7 % at concurrency 8");
    expect(valueOf(section, "Average TTFT p50 improvement")).toBe("+66.7 %");
  });

  test.each([
    ["traded", "–, completeness traded"],
    ["not-comparable", "–, not comparable"],
    ["better", "+66.7 % at concurrency 8"],
  ] as const)("a summary of one level that is %s says %s", (kind, said) => {
    expect(valueOf(summarySection(modelOf(levelWith(8, kind))), "Peak TTFT p50 improvement")).toBe(said);
  });

  test("pairs make no verdict where the level has none", () => {
    const rows = rowsOf(
      pairedSection(modelOf(levelWith(4, "traded"), levelWith(8, "better"), levelWith(9, "not-comparable"))),
    );
    expect(rows.map((row) => row[13])).toEqual(["completeness traded", "faster", "not comparable"]);
  });

  test.each([
    ["traded", {}, [undefined, undefined], "–, completeness traded"],
    ["not-comparable", {}, [100, 120], "–, not comparable"],
    // What was served in the window is what arms past saturation are compared on; a span shrinks with what is turned away.
    ["not-comparable", { isPastSaturation: true }, [100, 120], "+20.0 %"],
    ["not-comparable", { isPastSaturation: true }, [undefined, undefined], "–, not comparable"],
    ["better", {}, [undefined, undefined], "+10.0 %"],
  ] as const)("a throughput at a level that is %s %o", (kind, more, window, expected) => {
    const level = servedAt(levelWith(8, kind), window, [100, 110]);
    const model = modelOf({ ...level, verdict: { ...level.verdict, ...more } });
    expect(rowsOf(throughputSection(model))[0][3]).toBe(expected);
  });

  test("a throughput in the window is not held against one over the span", () => {
    const mixed = modelOf(servedAt(levelWith(8, "better"), [500, undefined], [100, 110]));
    expect(rowsOf(throughputSection(mixed))[0].slice(1, 4)).toEqual(["100.0", "110.0", "+10.0 %"]);
    expect(valueOf(summarySection(mixed), "Throughput advantage")).toBe("+10.0 %");
    expect(valueOf(summarySection(mixed), "Peak throughput (rr)")).toBe("100.0 tokens/s at concurrency 8");
  });
});
