import { describe, expect, it } from "vitest";
import { LearnedRing } from "./learned-ring.ts";

describe("LearnedRing", () => {
  it("gives back what was kept, as it was then", () => {
    const ring = new LearnedRing(10);
    const numbers = Float64Array.of(1, 2, 3);
    const first = ring.keep(numbers);
    numbers.fill(0);
    expect(ring.read(first, 3)).toEqual([1, 2, 3]);
  });

  it("keeps the newest and tells which are gone", () => {
    const ring = new LearnedRing(10);
    const kept = Array.from({ length: 20 }, (_, i) => ring.keep([i, i, i]));
    const alive = kept.map((first, i) => ring.read(first, 3)?.every((number) => number === i));
    expect(alive).toEqual([...Array<undefined>(17).fill(undefined), true, true, true]);
  });

  it("keeps nothing that is larger than itself", () => {
    const ring = new LearnedRing(2);
    expect(ring.read(ring.keep([1, 2, 3]), 3)).toBeUndefined();
    expect(ring.read(ring.keep([1, 2]), 2)).toEqual([1, 2]);
  });
});
