import { describe, expect, test } from "vitest";
import { accountingOf, type CellChanges, cellOf, groupOf } from "./cells.test-support.ts";
import { obstacles, type Obstacle } from "./comparability.ts";

const NOTHING = { baseline: undefined, arm: undefined };
const SCHEDULE = { speed: 1, workers: 2 };
const tokens = {
  outputMean: undefined,
  completedPromptMean: undefined,
  lostPromptMean: undefined,
  outputTotal: undefined,
};

function found(baseline: CellChanges, arm: CellChanges, settings: Parameters<typeof obstacles>[2] = NOTHING): string[] {
  const codes = obstacles(groupOf(cellOf("rr", baseline)), groupOf(cellOf("kv", arm)), settings);
  return codes.map(({ code }: Obstacle) => code);
}

describe("what stands in the way of comparing two arms", () => {
  test("nothing, where nothing is known to differ", () => {
    expect(found({}, {})).toEqual([]);
  });

  test.each<[string, CellChanges, CellChanges]>([
    ["nothing-completed", {}, { accounting: accountingOf(0) }],
    ["unequal-workers", {}, { level: { concurrency: 8, workers: 3 } }],
    ["saturation", { saturated: true }, { saturated: true }],
    ["different-load", { level: SCHEDULE }, { level: SCHEDULE, accounting: accountingOf(980, 980) }],
    [
      "different-prompts",
      { level: SCHEDULE, tokens: { ...tokens, promptMean: 1000 } },
      { level: SCHEDULE, tokens: { ...tokens, promptMean: 1020 } },
    ],
  ])("%s", (code, baseline, arm) => {
    expect(found(baseline, arm)).toEqual([code]);
  });

  test("a closed loop may offer more to the faster arm, and its prompts may differ a little", () => {
    expect(found({}, { accounting: accountingOf(900, 900) })).toEqual([]);
    expect(found({ tokens: { ...tokens, promptMean: 1000 } }, { tokens: { ...tokens, promptMean: 1090 } })).toEqual([]);
    expect(found({ tokens: { ...tokens, promptMean: 1000 } }, { tokens: { ...tokens, promptMean: 1120 } })).toEqual([
      "different-prompts",
    ]);
  });

  test("one arm past saturation is a result, not an obstacle", () => {
    expect(found({ saturated: true }, { saturated: false })).toEqual([]);
  });

  test("two settings that differ are one too many", () => {
    const settings = (entries: Record<string, string>): ReadonlyMap<string, string> => new Map(Object.entries(entries));
    const baseline = settings({ policy: "rr", admission: "queue" });
    expect(found({}, {}, { baseline, arm: settings({ policy: "kv", admission: "queue" }) })).toEqual([]);
    expect(found({}, {}, { baseline, arm: settings({ policy: "kv", admission: "shed" }) })).toEqual(["two-variables"]);
  });
});
