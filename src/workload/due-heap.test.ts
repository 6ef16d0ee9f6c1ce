import fc from "fast-check";
import { expect, test } from "vitest";
import { DueHeap } from "./due-heap.ts";

test("a due heap gives things back by time, and those of one time in the order they came", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(20)), (times) => {
      const heap = new DueHeap<number>();
      for (const [order, atNs] of times.entries()) heap.add(atNs, order);
      const sorted = Array.from(times.keys()).sort((a, b) => times[a] - times[b] || a - b);
      expect(heap.firstNs).toBe(times.length === 0 ? Infinity : Math.min(...times));
      expect(times.map(() => heap.take())).toEqual(sorted);
      expect([heap.take(), heap.size, heap.firstNs]).toEqual([undefined, 0, Infinity]);
    }),
  );
});
