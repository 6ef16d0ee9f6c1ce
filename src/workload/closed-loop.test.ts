import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { NS_PER_SECOND } from "../core/clock.ts";
import { Rng } from "../core/rng.ts";
import { ClosedLoop, type ClosedLoopSettings } from "./closed-loop.ts";
import { Conversations } from "./conversation/conversations.ts";
import { conversationPreset } from "./conversation/presets.ts";
import type { WorkloadRequest } from "./request.ts";
import { promptWithAnswer } from "./session-run.ts";
import { commonPrefixTokens } from "./prompt.ts";

const { parameters } = conversationPreset("multi-turn");

function conversations(sessions?: number): Conversations {
  return new Conversations(parameters, new Rng(5), sessions);
}

/** Sends up to `most` requests to a server that takes `answerNs` for each, and returns them as they were sent. */
function drive(
  loop: ClosedLoop,
  most: number,
  answerNs: (request: WorkloadRequest) => number,
  fails: (request: WorkloadRequest) => boolean = () => false,
): { sent: WorkloadRequest[]; mostUnderWay: number } {
  const sent: WorkloadRequest[] = [];
  const running: { endNs: number; request: WorkloadRequest }[] = [];
  let mostUnderWay = 0;
  while (sent.length < most) {
    running.sort((a, b) => a.endNs - b.endNs);
    const [first] = running;
    const dueNs = loop.nextDueNs();
    if (first !== undefined && first.endNs <= dueNs) {
      running.shift();
      loop.ended(first.request, { nowNs: first.endNs, completed: !fails(first.request) });
      continue;
    }
    if (dueNs === Infinity) break;
    const request = loop.take();
    expect(request.arrivalNs).toBe(dueNs);
    sent.push(request);
    running.push({ endNs: dueNs + answerNs(request), request });
    mostUnderWay = Math.max(mostUnderWay, running.length);
  }
  return { sent, mostUnderWay };
}

describe("a closed loop", () => {
  test("keeps as many conversations under way as it is told", () => {
    const { sent, mostUnderWay } = drive(new ClosedLoop(conversations(), { concurrency: 7 }), 400, () => NS_PER_SECOND);
    expect(mostUnderWay).toBe(7);
    expect(sent.slice(0, 7).map((request) => [request.session, request.turn, request.arrivalNs])).toEqual(
      [0, 1, 2, 3, 4, 5, 6].map((session) => [session, 0, 0]),
    );
  });

  test("sends the same requests whatever the speed of the answers", () => {
    const byId = (answerNs: (request: WorkloadRequest) => number): Map<number, WorkloadRequest> =>
      new Map(
        drive(new ClosedLoop(conversations(60), { concurrency: 9 }), 1e6, answerNs).sent.map((one) => [one.id, one]),
      );
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1000 }), (salt) => {
        const even = byId(() => 3 * NS_PER_SECOND);
        const uneven = byId(({ id }) => ((id * 7919 + salt) % 100) * 1e8);
        expect(even.size).toBe(uneven.size);
        for (const [id, { arrivalNs: _, ...request }] of even) expect(uneven.get(id)).toMatchObject(request);
      }),
      { numRuns: 10 },
    );
  });

  test("sends each follow-up with the whole history, after the user model has thought", () => {
    const { sent } = drive(new ClosedLoop(conversations(), { concurrency: 1 }), 40, () => NS_PER_SECOND);
    for (const [at, request] of sent.entries()) {
      if (request.turn === 0) continue;
      const before = promptWithAnswer(sent[at - 1]);
      expect(commonPrefixTokens(before, request.prompt)).toBe(before.tokens);
      const newTokens = request.promptTokens - before.tokens;
      expect(newTokens).toBeGreaterThanOrEqual(parameters.userTokens[0]);
      const waitedMs = (request.arrivalNs - sent[at - 1].arrivalNs) / 1e6 - 1000;
      expect(waitedMs).toBeGreaterThanOrEqual(parameters.thinkMs[0]);
      expect(waitedMs).toBeLessThanOrEqual(parameters.thinkMs[1]);
    }
  });

  test("goes on from the answer that really came", () => {
    const loop = new ClosedLoop(conversations(), { concurrency: 1 });
    const first = loop.take();
    loop.ended(first, { nowNs: 1, completed: true, outputTokens: 3 });
    expect(commonPrefixTokens(loop.take().prompt, promptWithAnswer(first))).toBe(first.promptTokens + 3);
  });

  test("never sends faster than its rate ceiling", () => {
    const { sent } = drive(new ClosedLoop(conversations(), { concurrency: 200, maxRateRps: 25 }), 600, () => 1000);
    const gaps = sent.slice(1).map((request, at) => request.arrivalNs - sent[at].arrivalNs);
    expect(Math.min(...gaps)).toBe(40_000_000);
  });

  test("begins its first conversations evenly over the ramp", () => {
    const loop = new ClosedLoop(conversations(), { concurrency: 4, rampNs: 8 * NS_PER_SECOND });
    expect([1, 2, 3, 4].map(() => loop.take().arrivalNs / NS_PER_SECOND)).toEqual([0, 2, 4, 6]);
    expect(loop.nextDueNs()).toBe(Infinity);
  });

  test("ends a conversation whose turn failed, counts its turns, and begins another later", () => {
    const loop = new ClosedLoop(conversations(), { concurrency: 1, failureDelayNs: 500 });
    const first = loop.take();
    loop.ended(first, { nowNs: 70, completed: false });
    expect(loop.abandonedTurns).toBeGreaterThanOrEqual(2);
    expect(loop.nextDueNs()).toBe(570);
    expect(loop.take()).toMatchObject({ session: 1, turn: 0 });
  });

  test("follows a concurrency that is raised and lowered", () => {
    const loop = new ClosedLoop(conversations(), { concurrency: 1 });
    const first = loop.take();
    expect(loop.nextDueNs()).toBe(Infinity);
    loop.setConcurrency(3, 50);
    expect([loop.take(), loop.take()].map((request) => request.arrivalNs)).toEqual([50, 50]);
    loop.setConcurrency(1, 60);
    loop.ended(first, { nowNs: 70, completed: false });
    expect(loop.nextDueNs()).toBe(Infinity);
    expect(loop.concurrency).toBe(1);
  });

  test("lets surplus clients leave after their turn where it is told so, those between two turns at once", () => {
    const givenUp: number[] = [];
    const onGivenUp = (session: number): void => void givenUp.push(session);
    const loop = new ClosedLoop(conversations(), { concurrency: 3, surplusLeaves: "after-turn", onGivenUp });
    const [first, second, third] = [loop.take(), loop.take(), loop.take()];
    loop.ended(first, { nowNs: 10, completed: true });
    loop.setConcurrency(1, 20);
    expect(givenUp).toEqual([0]);
    loop.ended(second, { nowNs: 30, completed: true });
    expect(givenUp).toEqual([0, 1]);
    loop.ended(third, { nowNs: 40, completed: true });
    expect(givenUp).toEqual([0, 1]);
    expect(loop.take()).toMatchObject({ session: 2, turn: 1 });
    expect(loop.nextDueNs()).toBe(Infinity);
  });

  test("stops when the conversations have run out, all turns sent", () => {
    const supply = conversations(11);
    const planned = Array.from({ length: 11 }, (_, at) => supply.session(at)?.turns.length ?? 0);
    const { sent } = drive(new ClosedLoop(supply, { concurrency: 4 }), 1000, () => NS_PER_SECOND);
    expect(sent).toHaveLength(planned.reduce((sum, turns) => sum + turns, 0));
    expect(new Set(sent.map((request) => request.id)).size).toBe(sent.length);
  });

  test.each([
    [{ concurrency: -1 }, "concurrency must be a whole number, 0 or more, got -1"],
    [{ concurrency: 1, maxRateRps: 0 }, "maxRateRps must be more than 0, got 0"],
  ])("refuses %j", (settings: ClosedLoopSettings, message) => {
    expect(() => new ClosedLoop(conversations(), settings)).toThrow(message);
  });

  test("refuses a call that makes no sense", () => {
    const loop = new ClosedLoop(conversations(), { concurrency: 1 });
    const first = loop.take();
    expect(() => loop.take()).toThrow("no request is due");
    loop.ended(first, { nowNs: 1, completed: true });
    expect(() => loop.ended(first, { nowNs: 2, completed: true })).toThrow("is not under way");
  });
});
