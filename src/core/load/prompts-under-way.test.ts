import { describe, expect, it } from "vitest";
import { LoadModel } from "./load-model.ts";

const BLOCK = 16;
/** Hashes of two words for each block; prompts of one start are alike as far as it goes. */
const prompt = (start: readonly number[], end: number): Uint32Array =>
  Uint32Array.from([...start.flatMap((block) => [block, block]), end, end]);

describe("the prompts that a replica is still to compute", () => {
  const setUp = (): LoadModel => {
    const model = new LoadModel({ maxReplicas: 2, blockTokens: BLOCK, inactivityNs: 1_000 });
    for (const replica of [0, 1]) model.addReplica(replica, { worker: `worker-${replica}` });
    return model;
  };
  const mine = prompt([1, 2, 3], 50);
  const settled = (model: LoadModel): number[] =>
    [0, 1].map((replica) => model.underWay.settledBlocks(replica, mine, 4));

  it("unsettle what they have in common with another, from the first block on that was not there before", () => {
    const model = setUp();
    expect(settled(model)).toEqual([4, 4]);
    model.reserve(0, "whole", 0, 4 * BLOCK, 0, prompt([1, 2, 3], 60));
    model.reserve(0, "rest", 1, 4 * BLOCK, 2 * BLOCK, prompt([1, 2, 3], 60));
    expect(settled(model)).toEqual([0, 2]);
  });

  it("leave alone what they do not compute, and what another prompt does not begin with", () => {
    const model = setUp();
    model.reserve(0, "behind", 0, 4 * BLOCK, 3 * BLOCK, prompt([1, 2, 3], 60));
    model.reserve(0, "other", 0, 4 * BLOCK, 0, prompt([9, 2, 3], 50));
    model.reserve(0, "shorter", 0, 2 * BLOCK, BLOCK, prompt([1], 60));
    model.reserve(0, "untold", 0, 4 * BLOCK, 0);
    expect(settled(model)).toEqual([4, 4]);
  });

  it("are done with their first token, their end, their silence and their replica's", () => {
    const model = setUp();
    const reserve = (request: string, replica = 0): void =>
      model.reserve(0, request, replica, 4 * BLOCK, 0, prompt([1, 2, 3], 60));
    for (const done of [
      (): unknown => model.firstToken(1, "a"),
      (): unknown => model.ended(1, "a"),
      (): unknown => model.expire(1_000),
    ]) {
      reserve("a");
      expect(settled(model)).toEqual([0, 4]);
      done();
      expect(settled(model)).toEqual([4, 4]);
      model.ended(2, "a");
    }
    reserve("c", 1);
    model.removeReplica(1);
    expect(settled(model)).toEqual([4, 4]);
  });
});
