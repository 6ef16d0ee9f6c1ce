import { describe, expect, test } from "vitest";
import { Rng } from "../../core/rng.ts";
import { ArrivalSupply } from "../arrival-supply.ts";
import { Conversations } from "../conversation/conversations.ts";
import { conversationPreset } from "../conversation/presets.ts";
import { commonPrefixTokens } from "../prompt.ts";
import type { SessionScript } from "../request.ts";
import { SessionRun } from "../session-run.ts";
import type { TraceRow } from "./row.ts";
import { rowsOfSessions } from "./synthesis.ts";
import { promptOfRow, TraceSessions } from "./trace-sessions.ts";

describe("the sessions of a trace", () => {
  test("begin in the order of time, rows without a session alone", () => {
    const rows: TraceRow[] = [
      { timestampMs: 30, inputTokens: 10, outputTokens: 1, hashIds: [1] },
      { timestampMs: 10, inputTokens: 10, outputTokens: 1, hashIds: [2], sessionId: "a" },
      { timestampMs: 20, inputTokens: 10, outputTokens: 1, hashIds: [3], sessionId: "a" },
      { delayMs: 4, inputTokens: 10, outputTokens: 1, hashIds: [4], sessionId: "a" },
    ];
    const sessions = new TraceSessions(rows, 512);
    const described = [0, 1, 2].map((at) => {
      const script = sessions.session(at)!;
      return [script.name, script.startNs! / 1e6, script.turns.map((turn) => turn.requestId)];
    });
    expect(described).toEqual([
      ["a", 10, [1]],
      ["a", 20, [2, 3]],
      ["row-0", 30, [0]],
    ]);
    expect(sessions.session(3)).toBeUndefined();
  });

  test("give a row without ids content that nobody shares", () => {
    const row: TraceRow = { timestampMs: 0, inputTokens: 100, outputTokens: 1, hashIds: [] };
    expect(commonPrefixTokens(promptOfRow(row, 0, 512), promptOfRow(row, 1, 512))).toBe(0);
  });

  test("refuse a turn that waits for nothing, and a row of unknown length", () => {
    const waiting = { delayMs: 4, inputTokens: 10, outputTokens: 1, hashIds: [], sessionId: "a" };
    expect(() => new TraceSessions([waiting], 512)).toThrow(
      "row 1 of the trace has a delay but no earlier turn of session a",
    );
    const text = { timestampMs: 0, outputTokens: 1, hashIds: [], textInput: "hello" };
    expect(() => new TraceSessions([text], 512)).toThrow("row 1 of the trace has text but no input_length");
  });
});

describe("a synthesised trace", () => {
  const supply = new Conversations(conversationPreset("multi-turn").parameters, new Rng(4), 40);
  const arrivals = new ArrivalSupply(supply, { kind: "poisson", rateRps: 2 }, new Rng(4));
  const rows = rowsOfSessions(arrivals, 40, 512);

  test("has the requests of its conversations, with their lengths, starts and delays", () => {
    const sessions = new TraceSessions(rows, 512);
    expect(sessions.size).toBe(40);
    for (let ordinal = 0; ordinal < 40; ordinal++) {
      const planned = lengths(arrivals.session(ordinal)!);
      const read = lengths(sessions.session(ordinal)!);
      expect(read).toEqual(planned);
    }
  });

  test("shares exactly the whole blocks that its prompts share", () => {
    const prompts = Array.from({ length: 40 }, (_, at) => new SessionRun(supply.session(at)!).next(0).prompt);
    const first = rows.filter((row) => row.timestampMs !== undefined);
    for (const [a, promptA] of prompts.entries()) {
      for (const [b, promptB] of prompts.slice(0, a).entries()) {
        const ids = first[a].hashIds;
        let shared = 0;
        while (shared < ids.length && ids[shared] === first[b].hashIds[shared]) shared++;
        const isEqual = promptA.tokens === promptB.tokens && commonPrefixTokens(promptA, promptB) === promptA.tokens;
        const whole = Math.floor(commonPrefixTokens(promptA, promptB) / 512);
        expect(shared).toBe(isEqual ? ids.length : whole);
      }
    }
  });

  test("numbers its blocks in the order in which they first occur", () => {
    let next = 0;
    for (const id of rows.flatMap((row) => row.hashIds)) {
      expect(id).toBeLessThanOrEqual(next);
      next = Math.max(next, id + 1);
    }
  });
});

function lengths(script: SessionScript): unknown {
  const run = new SessionRun(script);
  const turns = [];
  while (run.turnsLeft > 0) {
    const { thinkNs } = run;
    const request = run.next(0);
    run.answered(request, request.outputTokens);
    turns.push([request.turn === 0 ? 0 : thinkNs, request.promptTokens, request.outputTokens]);
  }
  return { startMs: Math.round((script.startNs ?? 0) / 1000), turns };
}
