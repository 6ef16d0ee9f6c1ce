import { expect, it } from "vitest";
import { candidateView } from "./candidate-view.ts";
import { leastLoaded } from "./least-loaded.ts";

it("takes the fewest requests in flight, even where another replica has the whole prompt", () => {
  const view = candidateView({ promptBlocks: 10 }, [
    { name: "a", inFlight: 3, cachedBlocks: 10 },
    { name: "b", inFlight: 2, activeBlocks: 9000 },
    { name: "c", inFlight: 5 },
  ]);
  expect(leastLoaded.create({}).choose(view)).toEqual({ kind: "place", replica: 1, runnerUp: 0, margin: 1, tied: 1 });
});
