import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { requireData } from "../../../test/support/required-component.ts";
import { parseMooncakeTrace, writeMooncakeRow } from "../../wire/mooncake-trace.ts";
import { engineCacheCeiling } from "./infinite-cache.ts";
import { inspectTrace } from "./inspection.ts";
import type { TraceRow } from "./row.ts";
import { countSessions } from "./session-count.ts";
import { tileRows } from "./transform.ts";

function row(timestampMs: number, inputTokens: number, hashIds: readonly number[]): TraceRow {
  return { timestampMs, inputTokens, outputTokens: 1, hashIds };
}

describe("the infinite-cache ceiling", () => {
  test("counts leading ids that any earlier row had, the cut last one too, over all ids", () => {
    const rows = [row(0, 1100, [0, 1, 2]), row(1, 1100, [0, 1, 2]), row(2, 1536, [0, 9, 2])];
    const { ceiling } = inspectTrace(rows, 512);
    expect(ceiling).toMatchObject({ hitBlocks: 4, blocks: 9, distinctBlocks: 4, hitTokens: 1100 + 512, tokens: 3736 });
    expect(ceiling.meanRowShare).toBeCloseTo((0 + 1 + 512 / 1536) / 3);
  });

  test("counts an engine's full blocks at the engine's size", () => {
    const uniform = (ids: readonly number[], tokens: number) =>
      ({ kind: "uniform", ids, tokens, segmentTokens: 512 }) as const;
    const prompts = [uniform([0, 1], 1000), uniform([0, 2], 1000)];
    expect(engineCacheCeiling(prompts, 64)).toMatchObject({ hitBlocks: 8, blocks: 30, hitTokens: 512, tokens: 2000 });
    // 512 is not a whole number of 100-token blocks: the block that crosses into the second id differs.
    expect(engineCacheCeiling(prompts, 100)).toMatchObject({ hitBlocks: 5, blocks: 20 });
  });
});

describe("an inspection", () => {
  test("tells time, order and rate", () => {
    const rows = [row(1000, 10, [0]), row(500, 20, [1]), row(3000, 30, [2])];
    expect(inspectTrace(rows, 512)).toMatchObject({
      rows: 3,
      durationSeconds: 2.5,
      meanRateRps: 1.2,
      outOfOrderRows: 1,
      inputTokens: { mean: 20, min: 10, p50: 20, max: 30 },
      grid: null,
      engine: null,
    });
    expect(inspectTrace([row(5, 10, [0])], 512)).toMatchObject({ durationSeconds: 0, meanRateRps: null });
  });

  test("takes turns that wait for an answer for no part of the rate", () => {
    const waiting = { inputTokens: 10, outputTokens: 1, hashIds: [], sessionId: "a", delayMs: 500 };
    const rows = [{ ...row(0, 10, [0]), sessionId: "a" }, waiting, waiting, row(2000, 10, [1])];
    expect(inspectTrace(rows, 512)).toMatchObject({ rows: 4, durationSeconds: 2, meanRateRps: 1, waitingRows: 2 });
    // Without a turn before it, a row with a time begins at its time.
    const lone = { ...row(4000, 10, [2]), sessionId: "b", delayMs: 5 };
    expect(inspectTrace([...rows, lone], 512)).toMatchObject({ waitingRows: 2, meanRateRps: 0.75 });
  });

  test("counts sessions by name where rows have one", () => {
    const named = { ...row(0, 10, [0]), sessionId: "a" };
    expect(countSessions([named, named, row(1, 10, [0])])).toEqual({ sessions: 2, from: "session-id" });
  });

  test("does not take a system prompt for a conversation", () => {
    const rows = Array.from({ length: 60 }, (_, at) => row(at, 1500, [0, 1, 2 + Math.floor(at / 2)]));
    expect(countSessions(rows)).toEqual({ sessions: 30, from: "shared-blocks" });
  });

  test("finds as many sessions in every copy of a trace, whose system prompt is another in each", () => {
    const rows = Array.from({ length: 60 }, (_, at) => row(at, 1500, [0, 1, 2 + Math.floor(at / 2)]));
    for (const copies of [2, 24, 100]) expect(countSessions(tileRows(rows, copies)).sessions).toBe(30 * copies);
  });
});

describe("the public traces", () => {
  for (const { file, blockPercent, tokenPercent, inputP50, rowCount, sessions, stepMs } of [
    {
      file: "conversation_trace",
      blockPercent: 36.6,
      tokenPercent: 37.4,
      inputP50: 6909,
      rowCount: 12_031,
      sessions: 7373,
      stepMs: 3000,
    },
    {
      file: "synthetic_trace",
      blockPercent: 64,
      tokenPercent: 65.1,
      inputP50: 11_587,
      rowCount: 3993,
      sessions: 2211,
      stepMs: null,
    },
    {
      file: "toolagent_head_1000",
      blockPercent: 38,
      tokenPercent: 39.1,
      inputP50: 6558,
      rowCount: 1000,
      sessions: 909,
      stepMs: 3053,
    },
  ]) {
    test(`have the known ceiling, lengths, sessions and grid: ${file}`, (context) => {
      const written = readFileSync(requireData(context, `traces/${file}.jsonl`), "utf8");
      const rows = parseMooncakeTrace(written, file);
      const inspection = inspectTrace(rows, 512);
      const { hitBlocks, blocks, hitTokens, tokens } = inspection.ceiling;
      expect((100 * hitBlocks) / blocks).toBeCloseTo(blockPercent, 1);
      expect((100 * hitTokens) / tokens).toBeCloseTo(tokenPercent, 1);
      expect(inspection.inputTokens.p50).toBe(inputP50);
      expect(inspection.rows).toBe(rowCount);
      expect(inspection.sessions.sessions).toBe(sessions);
      expect(inspection.grid?.stepMs ?? null).toBe(stepMs);
      expect(rows.map((one) => `${writeMooncakeRow(one)}\n`).join("") === written).toBe(true);
    });
  }
});
