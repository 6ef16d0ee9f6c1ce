import { describe, expect, test } from "vitest";
import { requestRecord } from "../../core/request-record.ts";
import { accountingOf, type CellChanges, cellOf, groupOf } from "./cells.test-support.ts";
import { obstacles, type Obstacle } from "./comparability.ts";
import { collectEvidence, IdNumbers } from "./evidence.ts";
import type { ArmAtLevel } from "./groups.ts";

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

  describe("an open loop of conversations, in which turns follow answers", () => {
    const OPEN = { rateRps: 1, workers: 2 };

    /** So many conversations in a window, and how many turns of each came in it; each turn is longer than the one before. */
    function talks(arm: string, conversations: number, turns: number, promptTokens = 100): ArmAtLevel {
      const records = Array.from({ length: conversations * turns }, (_, at) =>
        requestRecord({
          id: String(at),
          session: String(at % conversations),
          turn: Math.floor(at / conversations),
          intendedNs: at,
          promptTokens: promptTokens * (1 + Math.floor(at / conversations)),
          account: "completed",
        }),
      );
      const window = { startNs: 0, endNs: 1e6, drainNs: 0 };
      const offered = conversations * turns;
      const promptMean = (promptTokens * (1 + turns)) / 2;
      const prompts = { requests: offered, digest: `sha256:${offered}`, sentBefore: 0, equalToBefore: 0 };
      const group = groupOf(
        cellOf(arm, {
          level: OPEN,
          accounting: accountingOf(offered, offered),
          tokens: { ...tokens, promptMean },
          live: { ...cellOf(arm).live, prompts },
        }),
      );
      return { ...group, evidence: [collectEvidence(records, window, {}, new IdNumbers())] };
    }
    const codesOf = (baseline: ArmAtLevel, arm: ArmAtLevel): string[] =>
      obstacles(baseline, arm, NOTHING).map(({ why }) => why);

    test("the faster arm may get to more turns, with longer prompts", () => {
      expect(codesOf(talks("rr", 100, 2), talks("kv", 100, 3))).toEqual([]);
    });

    test("conversations begun, and how they begin, must agree", () => {
      expect(codesOf(talks("rr", 100, 2), talks("kv", 97, 2))).toEqual([
        "the arms were offered different loads: 100 and 97 conversations begun per run",
      ]);
      expect(codesOf(talks("rr", 100, 2), talks("kv", 100, 2, 110))).toEqual([
        "the arms got different prompts: 100 and 110 tokens on average in first turns",
      ]);
    });

    test("without records, or without follow-ups, requests are counted", () => {
      const unknown = { ...talks("kv", 100, 3), evidence: undefined };
      expect(codesOf({ ...talks("rr", 100, 2), evidence: undefined }, unknown)[1]).toBe(
        "the arms were offered different loads: 200 and 300 requests per run",
      );
      expect(codesOf(talks("rr", 100, 1), talks("kv", 97, 1))[1]).toBe(
        "the arms were offered different loads: 100 and 97 requests per run",
      );
    });
  });
});
