import { expect, test } from "vitest";
import { Rng } from "../../../core/rng.ts";
import { ClosedLoop } from "../../../workload/closed-loop.ts";
import { Conversations } from "../../../workload/conversation/conversations.ts";
import { conversationPreset } from "../../../workload/conversation/presets.ts";
import { CeilingSource } from "./ceiling-source.ts";

const PARAMETERS = {
  ...conversationPreset("multi-turn").parameters,
  starters: 1,
  starterTokens: [640, 640],
  turns: [2, 2],
  userTokens: [64, 64],
  outputTokensByTurn: [128],
  outputVariation: 0,
  tailShare: 0,
} as const;

test("the ceiling counts starters and histories that any earlier request has left, answers included", () => {
  const loop = new ClosedLoop(new Conversations(PARAMETERS, new Rng(1)), { concurrency: 1 });
  const window = { startNs: 0, endNs: Infinity, drainNs: 0 };
  const source = new CeilingSource(loop, 64, window);
  expect(source.ceiling).toBeUndefined();
  const first = source.take();
  expect(source.ceiling).toBe(0);
  source.ended(first, { nowNs: 1e9, completed: true });
  const second = source.take();
  expect(second.promptTokens).toBe(640 + 128 + 64);
  expect(source.ceiling).toBeCloseTo((640 + 128) / (640 + second.promptTokens), 9);
  source.ended(second, { nowNs: 3e9, completed: true });
  source.take();
  expect(source.ceiling).toBeCloseTo((640 + 128 + 640) / (640 + second.promptTokens + 640), 9);
});

test("the ceiling is that of the window's requests alone", () => {
  const loop = new ClosedLoop(new Conversations(PARAMETERS, new Rng(1)), { concurrency: 1 });
  const source = new CeilingSource(loop, 64, { startNs: 1, endNs: Infinity, drainNs: 0 });
  const first = source.take();
  expect(source.ceiling).toBeUndefined();
  source.ended(first, { nowNs: 1e9, completed: true });
  const second = source.take();
  expect(source.ceiling).toBeCloseTo((640 + 128) / second.promptTokens, 9);
});
