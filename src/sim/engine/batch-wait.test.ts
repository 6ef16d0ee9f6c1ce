import { describe, expect, it } from "vitest";
import { chunkTimesNs } from "../../measure/token-gaps.ts";
import type { EngineRequest } from "./engine-request.ts";
import { engineWith, PLAIN, play, request } from "./engine-scenario.ts";
import type { EngineLimits } from "./profile.ts";

/** Up to five steps, while decodes and prompts have less than 32 of the 64 tokens of a step. */
const WAITING = { ...PLAIN, batchWaitSteps: 5, batchWaitTokensRatio: 0.5 };

/** Tokens that a request which decodes from the beginning has when each of the others has its first one. */
function tokensMeanwhile(
  profile: typeof PLAIN,
  others: readonly (readonly [atMs: number, EngineRequest])[],
  limits: Partial<EngineLimits> = {},
): number[] {
  const output = play(engineWith(profile, limits), [0, request(0, [1], 4, 60)], ...others);
  const decoding = output.finished.find(({ key }) => key === 0);
  const times = chunkTimesNs({ form: "runs", runs: decoding?.tokenRuns ?? new Float64Array(0) }) ?? [];
  return output.firstTokens.filter(({ key }) => key > 0).map(({ atNs }) => times.filter((ns) => ns <= atNs).length);
}

describe("the batch wait of TensorRT-LLM", () => {
  it("holds a prompt back for so many steps while others decode", () => {
    const newcomer = [[30, request(1, [2], 4, 2)]] as const;
    const [atOnce] = tokensMeanwhile(PLAIN, newcomer);
    expect(tokensMeanwhile(WAITING, newcomer)).toEqual([atOnce + 5]);
  });

  it("is over as soon as the step would have enough tokens", () => {
    const long = [[30, request(1, [2, 3, 4, 5, 6, 7, 8, 9], 31, 2)]] as const;
    expect(tokensMeanwhile(WAITING, long)).toEqual(tokensMeanwhile(PLAIN, long));
  });

  it("lets prompts that come meanwhile be computed in one step", () => {
    const two = [
      [30, request(1, [2, 3, 4, 5], 16, 2)],
      [40, request(2, [6, 7, 8, 9], 16, 2)],
    ] as const;
    const atOnce = tokensMeanwhile(PLAIN, two);
    expect(atOnce[1]).toBeGreaterThan(atOnce[0]);
    const [first, second] = tokensMeanwhile(WAITING, two);
    expect(first).toBe(second);
    expect(first).toBeLessThan(atOnce[0] + 5);
  });

  it("begins anew for the prompts after those", () => {
    const two = [
      [30, request(1, [2], 4, 2)],
      [200, request(2, [3], 4, 2)],
    ] as const;
    expect(tokensMeanwhile(WAITING, two)).toEqual(tokensMeanwhile(PLAIN, two).map((tokens) => tokens + 5));
  });

  it("does not hold back where nothing decodes", () => {
    const firstToken = (profile: typeof PLAIN): number =>
      play(engineWith(profile), [0, request(0, [1], 4, 3)]).firstTokens[0].atNs;
    expect(firstToken(WAITING)).toBe(firstToken(PLAIN));
  });

  it("counts only the steps in which the prompt has room", () => {
    // The slot is free after the 20th token of the second request, and only then does the third begin to wait.
    const crowd = [
      [1, request(1, [2], 4, 20)],
      [30, request(2, [3], 4, 2)],
    ] as const;
    const [, atOnce] = tokensMeanwhile(PLAIN, crowd, { maxSequences: 2 });
    const [first, held] = tokensMeanwhile(WAITING, crowd, { maxSequences: 2 });
    expect(held).toBe(atOnce + 5 + 5);
    expect(held - first).toBe(20 + 5);
  });

  it("is refused with only one of its two numbers, which alone would do nothing", () => {
    const complaint = "have no effect without each other";
    expect(() => engineWith({ ...PLAIN, batchWaitSteps: 20 })).toThrow(complaint);
    expect(() => engineWith({ ...PLAIN, batchWaitTokensRatio: 0.9 })).toThrow(complaint);
    expect(() => engineWith({ ...WAITING, batchWaitSteps: 1.5 })).toThrow("whole number of at least 0");
  });
});
