import { describe, expect, it } from "vitest";
import { candidateView } from "./candidate-view.ts";
import { product } from "./product.ts";

describe("product", () => {
  it("multiplies prefill tokens by the batch with this request in it", () => {
    const rows = [
      { name: "a", pendingPrefillTokens: 500, cachedBlocks: 8, inFlight: 3 },
      { name: "b", inFlight: 0 },
      { name: "c", cachedBlocks: 10, inFlight: 40 },
    ];
    const view = candidateView({ promptBlocks: 10, promptTokens: 700 }, rows);
    const { candidates } = product.create({}).explain(view);
    expect(candidates.map(({ cost }) => cost)).toEqual([(500 + 188) * 4, 700, 60 * 41]);
    expect(candidates[0].terms.map(({ value }) => value)).toEqual([2000, 752]);
    expect(product.create({}).choose(view)).toMatchObject({ replica: 1, runnerUp: 2 });
  });

  it("rotates between replicas that have everything and nothing to do", () => {
    const rows = [
      { name: "a", cachedBlocks: 10, inFlight: 0, lastChosen: 2 },
      { name: "b", cachedBlocks: 10, inFlight: 9, lastChosen: 1 },
    ];
    const choice = product.create({}).choose(candidateView({ promptBlocks: 10 }, rows));
    expect(choice).toMatchObject({ replica: 1, margin: 0, tied: 2 });
  });
});
