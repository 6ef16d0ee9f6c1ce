import { describe, expect, it } from "vitest";
import { BlockTable } from "./block-table.ts";
import { hashAt, PAGE_BLOCKS } from "./page-layout.ts";

const PAGES = 16;

/** A table over pages of its own, into which blocks are put page by page. */
function tableOf(hashes: Uint32Array, isSparse = false): { table: BlockTable; blocks: number } {
  const blocks = hashes.length / 2;
  const table = new BlockTable(PAGES * PAGE_BLOCKS, new Int32Array(hashAt(PAGES * PAGE_BLOCKS)), isSparse);
  for (let from = 0; from < blocks; from += PAGE_BLOCKS) {
    const count = Math.min(PAGE_BLOCKS, blocks - from);
    expect(table.insertRun(hashes, from, count, from)).toBe(count);
  }
  return { table, blocks };
}

function found(table: BlockTable, hashes: Uint32Array): number[] {
  return Array.from({ length: hashes.length / 2 }, (_, i) => table.find(hashes[2 * i] | 0, hashes[2 * i + 1] | 0));
}

describe("hashes that all have the same home", () => {
  const hashes = Uint32Array.from({ length: 2 * 100 }, (_, i) => (i % 2 === 0 ? 0xdead_beef : i));

  it("are found as far as there is room near it, and the others are simply not found", () => {
    const { table, blocks } = tableOf(hashes);
    const ids = found(table, hashes);
    expect(ids.slice(0, 60)).toEqual(Array.from({ length: 60 }, (_, i) => i));
    expect(ids.slice(64)).toEqual(Array.from({ length: blocks - 64 }, () => -1));
  });

  it("leave nothing behind when they are removed, whether they had found room or not", () => {
    const { table, blocks } = tableOf(hashes);
    for (let from = 0; from < blocks; from += PAGE_BLOCKS) table.removeRun(from, Math.min(blocks, from + PAGE_BLOCKS));
    expect(found(table, hashes)).toEqual(Array.from({ length: blocks }, () => -1));
    expect(table.insertRun(hashes, 80, 16, 0)).toBe(16);
    expect(found(table, hashes.subarray(160, 192))).toEqual(Array.from({ length: 16 }, (_, i) => i));
  });
});

describe("hashes at the ends of their range", () => {
  it.each([false, true])("have homes in the table, sparse or not (%s)", (isSparse) => {
    const hashes = Uint32Array.of(0, 1, 0xffff_ffff, 2, 0xffff_f000, 3, 0x0000_0fff, 4);
    const { table } = tableOf(hashes, isSparse);
    expect(found(table, hashes)).toEqual([0, 1, 2, 3]);
    expect(table.find(0, 2)).toBe(-1);
  });
});

describe("a run with a block that is there already", () => {
  it("ends before it", () => {
    const hashes = Uint32Array.of(11, 1, 12, 1, 13, 1);
    const { table } = tableOf(hashes);
    expect(table.insertRun(Uint32Array.of(21, 1, 22, 1, 12, 1, 23, 1), 0, 4, PAGE_BLOCKS)).toBe(2);
    expect(table.find(12, 1)).toBe(1);
    expect(table.find(23, 1)).toBe(-1);
  });
});

describe("a sparse table", () => {
  it("takes at most a megabyte more than a dense one", () => {
    for (const blocks of [1 << 10, 1 << 16, 1 << 18, 1 << 21]) {
      const [dense, sparse] = [false, true].map(
        (isSparse) => new BlockTable(blocks, new Int32Array(0), isSparse).bytes,
      );
      expect(sparse).toBeGreaterThanOrEqual(dense);
      expect(sparse - dense).toBeLessThanOrEqual(1 << 20);
    }
  });
});
