import { describe, expect, test } from "vitest";
import { type Cell, cellsOf } from "../../../lab/experiment/cells.ts";
import { readExperiment } from "../../../lab/experiment/read.ts";
import { type CellOutcome, measureCell, type MeasuredCell } from "../../../lab/experiment/target.ts";
import type { PreparedTrace } from "../../../lab/experiment/workload.ts";
import type { TraceRow } from "../../../workload/trace/row.ts";
import { simulateCell } from "./simulated-cell.ts";

const SESSIONS = 10;
const TURNS = 5;

/** Conversations that all begin within a second and go on for half a minute. */
function conversations(): PreparedTrace {
  const rows = Array.from({ length: SESSIONS }, (_, session) =>
    Array.from({ length: TURNS }, (__, turn): TraceRow => {
      const when = turn === 0 ? { timestampMs: 100 * session } : { delayMs: 6000 };
      return { ...when, sessionId: `s${session}`, inputTokens: 600 + 100 * turn, outputTokens: 20, hashIds: [] };
    }),
  ).flat();
  return { rows, provenance: { source: "made up", sha256: "0", sourceRows: rows.length, steps: [] } };
}

function replayed(changes: object = {}): MeasuredCell {
  const { experiment, problems } = readExperiment({
    name: "replay",
    fleet: { model: "qwen3-8b", gpu: "h100", workers: 2, engine: { profile: "vllm" }, blockTokens: 64 },
    workload: { trace: { files: ["made up"] } },
    load: { speed: [1] },
    arms: [{ name: "rr", policy: "round-robin" }],
    ...changes,
  });
  if (experiment === undefined) throw new Error(problems.join("\n"));
  const trace = conversations();
  const run = (cell: Cell): CellOutcome => simulateCell({ experiment, trace, tokensPerSequence: 900 }, cell);
  return measureCell(experiment, cellsOf(experiment)[0], run);
}

describe("a trace with turns that wait for answers", () => {
  test("is replayed to its last row, and measured to its last row", () => {
    const { result, outcome } = replayed();
    expect(result.accounting).toMatchObject({ offered: SESSIONS * TURNS, completed: SESSIONS * TURNS });
    expect(result.unsentRows).toBeUndefined();
    const lastNs = Math.max(...outcome.records.map(({ intendedNs }) => intendedNs));
    expect(lastNs).toBeGreaterThan(24e9);
    expect(result.window.endSeconds * 1e9 - lastNs).toBeGreaterThan(0);
    expect(result.window.endSeconds * 1e9 - lastNs).toBeLessThanOrEqual(1001);
    expect(result.cache.ceiling).toBeTypeOf("number");
  });

  test("says what was not sent where the window ends before it", () => {
    const { result } = replayed({ windowSeconds: 10 });
    expect(result.accounting.offered + (result.unsentRows ?? 0)).toBe(SESSIONS * TURNS);
    expect(result.unsentRows).toBeGreaterThan(SESSIONS);
  });

  test("says what was not sent because a turn before it did not complete", () => {
    const { result } = replayed({ timeoutSeconds: 0.001 });
    expect(result.accounting).toMatchObject({ offered: SESSIONS, timedOut: SESSIONS });
    expect(result.unsentRows).toBe(SESSIONS * (TURNS - 1));
  });
});

test("a window that goes on long after the trace says from when on nothing was sent", () => {
  const told = replayed({ windowSeconds: 100 }).result.ranOutSeconds;
  expect(told).toBeGreaterThan(24);
  expect(told).toBeLessThan(60);
  const closed = replayed({ load: { concurrency: [4] }, windowSeconds: 600 }).result;
  expect(closed.ranOutSeconds).toBeLessThan(300);
  expect(replayed().result.ranOutSeconds).toBeUndefined();
  expect(replayed({ windowSeconds: 10 }).result.ranOutSeconds).toBeUndefined();
});

test("a warm-up that outlasts the trace is refused in one line", () => {
  expect(() => replayed({ warmUpSeconds: 100 })).toThrow(
    /^warmUpSeconds: the trace is over after [\d.]+ s, and the warm-up takes 100\.0 s: nothing is left to measure$/,
  );
});

test("what workers did before the window and after it is not in its figures", () => {
  const { result } = replayed({ warmUpSeconds: 2, windowSeconds: 3 });
  expect(result.accounting.offered).toBe(0);
  expect(
    result.workers.map(({ busyShare, queueMax, kvOccupancyMax }) => [busyShare, queueMax, kvOccupancyMax]),
  ).toEqual([
    [0, 0, 0],
    [0, 0, 0],
  ]);
});
