import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Rng } from "../../core/rng.ts";
import { detectGrid } from "./grid.ts";
import { describeProvenance, withStep } from "./provenance.ts";
import type { TraceRow } from "./row.ts";
import { TraceSessions } from "./trace-sessions.ts";
import { filterRows, inOrder, jitterRows, scaleRows, sliceRows, tileRows } from "./transform.ts";

function row(timestampMs: number, inputTokens = 100, outputTokens = 10, hashIds: readonly number[] = [1]): TraceRow {
  return { timestampMs, inputTokens, outputTokens, hashIds };
}

/** Ten rows at each of twenty times that are about three seconds apart, as in the public traces. */
const GRID_ROWS = Array.from({ length: 200 }, (_, at) => row(Math.floor(at / 10) * 3000 + (Math.floor(at / 10) % 3)));

const SESSION_ROWS: readonly TraceRow[] = [
  { timestampMs: 1000, inputTokens: 900, outputTokens: 10, hashIds: [1, 2], sessionId: "a" },
  { delayMs: 5, inputTokens: 100, outputTokens: 10, hashIds: [3], sessionId: "a" },
  { delayMs: 6, inputTokens: 200, outputTokens: 10, hashIds: [4], sessionId: "a" },
  { timestampMs: 2000, inputTokens: 300, outputTokens: 10, hashIds: [5] },
];

describe("a filter", () => {
  test("keeps what is inside all its bounds, ends included", () => {
    const rows = [row(0, 100, 10), row(1, 200, 20), row(2, 300, 30)];
    expect(filterRows(rows, { maxInputTokens: 200 })).toEqual(rows.slice(0, 2));
    expect(filterRows(rows, { minInputTokens: 200, maxOutputTokens: 20 })).toEqual([rows[1]]);
    expect(filterRows(rows, { minOutputTokens: 20 })).toEqual(rows.slice(1));
    expect(filterRows(rows, { maxTotalTokens: 219 })).toEqual([rows[0]]);
  });

  test("does not take a row of text, whose length it cannot know, for an empty one", () => {
    const rows: TraceRow[] = [row(0), { timestampMs: 1, outputTokens: 10, hashIds: [], textInput: "a long text" }];
    for (const filter of [{ maxInputTokens: 200 }, { minInputTokens: 1 }, { maxTotalTokens: 300 }])
      expect(() => filterRows(rows, filter)).toThrow("row 2 of the trace has text but no input_length");
    expect(filterRows(rows, { maxOutputTokens: 20 })).toEqual(rows);
  });

  test("gives a follow-up that lost its first turn the time of that turn", () => {
    const kept = filterRows(SESSION_ROWS, { maxInputTokens: 500 });
    expect(kept.map(({ timestampMs, delayMs }) => [timestampMs, delayMs])).toEqual([
      [1000, 5],
      [undefined, 6],
      [2000, undefined],
    ]);
    expect(new TraceSessions(kept, 512).size).toBe(2);
  });
});

describe("a slice", () => {
  test("is by rows or by time, without its end, and begins at 0", () => {
    const rows = [0, 10, 20, 30, 40].map((ms) => row(ms));
    const times = (slice: Parameters<typeof sliceRows>[1], keepTimes?: boolean): (number | undefined)[] =>
      sliceRows(rows, slice, keepTimes).map((one) => one.timestampMs);
    expect(times({ fromRow: 1, toRow: 3 })).toEqual([0, 10]);
    expect(times({ fromMs: 20, toMs: 40 })).toEqual([0, 10]);
    expect(times({ fromMs: 20 }, true)).toEqual([20, 30, 40]);
    expect(times({ fromRow: 9 })).toEqual([]);
  });

  test("takes follow-ups with their conversation", () => {
    expect(sliceRows(SESSION_ROWS, { toMs: 1500 })).toHaveLength(3);
  });

  test("sends a follow-up whose conversation began before it with its own first rows, not long before them", () => {
    const rows: TraceRow[] = [
      { ...row(0), sessionId: "a" },
      row(60_000),
      { inputTokens: 100, outputTokens: 10, hashIds: [2], delayMs: 5, sessionId: "a" },
      row(61_000),
    ];
    expect(sliceRows(rows, { fromRow: 1 }).map((one) => one.timestampMs)).toEqual([0, 0, 1000]);
    expect(sliceRows(rows, { fromRow: 2 }, true).map((one) => one.timestampMs)).toEqual([61_000, 61_000]);
    expect(sliceRows(rows, { fromRow: 2, toRow: 3 }).map((one) => one.timestampMs)).toEqual([0]);
  });
});

describe("a speed", () => {
  test("of 0.8 makes the trace 1.25 times as long and leaves people's delays", () => {
    const scaled = scaleRows(SESSION_ROWS, 0.8);
    expect(scaled.map((one) => one.timestampMs)).toEqual([1250, undefined, undefined, 2500]);
    expect(scaled[1].delayMs).toBe(5);
    expect(() => scaleRows(SESSION_ROWS, 0)).toThrow("speed must be more than 0, got 0");
  });
});

describe("jitter", () => {
  test("leaves turns that wait behind the turn they wait for, whatever times they have", () => {
    const rows = GRID_ROWS.flatMap((first, at): TraceRow[] => [
      { ...first, sessionId: `s${at}` },
      { ...first, sessionId: `s${at}`, delayMs: 100 },
    ]);
    const sessions = new TraceSessions(jitterRows(rows, new Rng(3)), 512);
    expect(sessions.size).toBe(GRID_ROWS.length);
    expect(Array.from({ length: sessions.size }, (_, at) => sessions.session(at)?.turns.length)).not.toContain(1);
  });

  test("moves every row to a time before the next of the grid, and is the same for the same seed", () => {
    fc.assert(
      fc.property(fc.nat(), (seed) => {
        const rows = GRID_ROWS.map((one, at) => ({ ...one, outputTokens: at + 1 }));
        const jittered = jitterRows(rows, new Rng(seed));
        expect(jittered).toEqual(jitterRows(rows, new Rng(seed)));
        expect(jittered).toHaveLength(rows.length);
        expect(jittered).toEqual(inOrder(jittered));
        for (const { timestampMs = -1, outputTokens } of jittered) {
          const from = rows[outputTokens - 1].timestampMs!;
          expect(timestampMs).toBeGreaterThanOrEqual(from);
          expect(timestampMs).toBeLessThan(from + 3002);
        }
        expect(detectGrid(jittered)).toBeUndefined();
      }),
      { numRuns: 20 },
    );
  });

  test("is refused where there is no grid", () => {
    expect(() =>
      jitterRows(
        [0, 17, 40, 41, 90].map((ms) => row(ms)),
        new Rng(1),
      ),
    ).toThrow("have no grid");
  });
});

describe("a grid", () => {
  test("is found where it is a little uneven or has gaps", () => {
    const rows = GRID_ROWS.filter(({ timestampMs = 0 }) => timestampMs < 6000 || timestampMs > 12_000);
    expect(detectGrid(rows)).toMatchObject({ times: 18, rowsPerTime: 10, mostRowsPerTime: 10 });
    expect(Math.abs((detectGrid(rows)?.stepMs ?? 0) - 3000)).toBeLessThan(3);
  });

  test("is not seen in irregular bursts", () => {
    expect(detectGrid([0, 700, 1000, 5000, 5100].flatMap((ms) => [row(ms), row(ms), row(ms)]))).toBeUndefined();
  });
});

describe("tiling", () => {
  test("repeats a trace at its rate with ids of its own in each copy", () => {
    const tiled = tileRows([row(0, 100, 10, [0, 1]), row(10, 100, 10, [0, 2])], 3);
    expect(tiled.map((one) => one.timestampMs)).toEqual([0, 10, 20, 30, 40, 50]);
    expect(tiled.map((one) => one.hashIds)).toEqual([
      [0, 1],
      [0, 2],
      [3, 4],
      [3, 5],
      [6, 7],
      [6, 8],
    ]);
  });

  test("leaves no hole before the copies of a trace that does not begin at 0", () => {
    const tiled = tileRows([row(600_000), row(600_010)], 2);
    expect(tiled.map((one) => one.timestampMs)).toEqual([600_000, 600_010, 600_020, 600_030]);
  });

  test("keeps the sessions of the copies apart", () => {
    expect(new TraceSessions(tileRows(SESSION_ROWS, 2), 512).size).toBe(4);
  });
});

describe("provenance", () => {
  test("says in one line what was done to which file", () => {
    const source = { source: "t.jsonl", sha256: "b8cbb061a85206d729d91c", sourceRows: 1000, steps: [] };
    const filtered = withStep(source, { step: "filter", maxInputTokens: 16_384 }, 865);
    expect(describeProvenance(withStep(filtered, { step: "jitter", seed: 3 }, 865))).toBe(
      "t.jsonl sha256:b8cbb061a852 (1000 rows) → filter maxInputTokens=16384 (865 rows) → jitter seed=3 (865 rows)",
    );
    expect(source.steps).toEqual([]);
  });
});
