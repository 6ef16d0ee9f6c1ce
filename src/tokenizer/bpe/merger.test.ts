import { expect, test } from "vitest";
import { MergeTable, mergeTableSize } from "./merge-table.ts";
import { Merger } from "./merger.ts";

test("what a long piece needed is given back with the next one, and its result is there until then", () => {
  const table = new MergeTable(new Int32Array(mergeTableSize(1)));
  table.set(1, 1, 0, 2);
  const merger = new Merger(table);
  merger.room(1_000_001).fill(1);
  expect(merger.merge(1_000_001)).toBe(500_001);
  expect([merger.symbols[0], merger.symbols[500_000]]).toEqual([2, 1]);
  expect(merger.symbols).toHaveLength(1_000_001);
  expect(merger.room(10).length).toBeLessThan(100);
  merger.room(10).fill(1);
  expect(merger.merge(10)).toBe(5);
});
