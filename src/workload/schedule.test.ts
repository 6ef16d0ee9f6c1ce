import { describe, expect, test } from "vitest";
import { Rng } from "../core/rng.ts";
import { ArrivalSupply } from "./arrival-supply.ts";
import { Conversations } from "./conversation/conversations.ts";
import { conversationPreset } from "./conversation/presets.ts";
import { Schedule } from "./schedule.ts";
import { TraceSessions } from "./trace/trace-sessions.ts";

const ROWS = [
  { timestampMs: 0, inputTokens: 600, outputTokens: 5, hashIds: [0, 1] },
  { timestampMs: 10, inputTokens: 100, outputTokens: 5, hashIds: [2], sessionId: "a" },
  { delayMs: 7, inputTokens: 200, outputTokens: 5, hashIds: [3], sessionId: "a" },
  { delayMs: 8, inputTokens: 300, outputTokens: 5, hashIds: [4], sessionId: "a" },
  { timestampMs: 20, inputTokens: 512, outputTokens: 5, hashIds: [0] },
];

describe("an open loop", () => {
  test("sends at the workload's times whether or not answers have come", () => {
    const schedule = new Schedule(new TraceSessions(ROWS, 512), 1000);
    const taken = [schedule.take(), schedule.take(), schedule.take()];
    expect(taken.map((request) => [request.id, request.arrivalNs])).toEqual([
      [0, 1000],
      [1, 10_001_000],
      [4, 20_001_000],
    ]);
    expect(schedule.nextDueNs()).toBe(Infinity);
    expect(() => schedule.take()).toThrow("no request is due");
  });

  test("lets a turn with a delay wait for the turn before it", () => {
    const schedule = new Schedule(new TraceSessions(ROWS, 512));
    const [, first] = [schedule.take(), schedule.take()];
    schedule.ended(first, { nowNs: 12_000_000, completed: true });
    expect(schedule.nextDueNs()).toBe(19_000_000);
    const second = schedule.take();
    expect(second).toMatchObject({ id: 2, turn: 1, sessionName: "a", promptTokens: 200, isLastTurn: false });
    schedule.ended(second, { nowNs: 19_500_000, completed: false });
    expect(schedule.abandonedTurns).toBe(1);
    expect(schedule.take().id).toBe(4);
  });

  test("begins conversations at a rate", () => {
    const supply = new Conversations(conversationPreset("short-chat").parameters, new Rng(1), 3);
    const schedule = new Schedule(new ArrivalSupply(supply, { kind: "constant", rateRps: 2 }, new Rng(1)));
    expect([1, 2, 3].map(() => schedule.take().arrivalNs)).toEqual([0, 5e8, 1e9]);
    expect(schedule.nextDueNs()).toBe(Infinity);
  });
});
