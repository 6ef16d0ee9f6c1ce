import { describe, expect, test } from "vitest";
import { type RequestRecord, requestRecord, type RequestRecordFields } from "../../core/request-record.ts";
import { anatomyOf, FastestPrefill } from "./anatomy.ts";
import { balanceOf } from "./balance.ts";
import { cellOf, groupOf } from "./cells.test-support.ts";
import { type CellEvidence, collectEvidence, IdNumbers } from "./evidence.ts";
import type { ArmAtLevel } from "./groups.ts";
import { pairedView } from "./pairs.ts";

const MS = 1e6;
const WINDOW = { startNs: 0, endNs: 1000 * MS, drainNs: 500 * MS };

/** A request that was due at a time and got its first token so much later, of it 1 ms at the client and 2 ms in the router. */
function answered(id: string, atMs: number, ttftMs: number, more: Partial<RequestRecordFields> = {}): RequestRecord {
  return requestRecord({
    id,
    intendedNs: atMs * MS,
    sentNs: (atMs + 1) * MS,
    placedNs: (atMs + 3) * MS,
    firstContentNs: (atMs + ttftMs) * MS,
    lastContentNs: (atMs + ttftMs + 40) * MS,
    endNs: (atMs + ttftMs + 40) * MS,
    promptTokens: 640,
    outputTokens: 5,
    observedCachedTokens: 0,
    worker: "a",
    account: "completed",
    ...more,
  });
}

const shed = (id: string, atMs: number): RequestRecord =>
  requestRecord({ id, intendedNs: atMs * MS, endNs: atMs * MS, promptTokens: 100, account: "shed" });

function evidenceOf(records: readonly RequestRecord[], ids: IdNumbers = new IdNumbers()): CellEvidence {
  return collectEvidence(records, WINDOW, { ttftMs: 50 }, ids);
}

function withEvidence(arm: string, ...evidence: CellEvidence[]): ArmAtLevel {
  return { ...groupOf(...evidence.map((_, i) => cellOf(arm, { run: i + 1 }))), evidence };
}

describe("the requests of a window in columns", () => {
  test("in order of arrival, without those of other windows", () => {
    const { columns } = evidenceOf([answered("late", 950, 10), answered("first", 0, 10), answered("next", 1000, 10)]);
    expect(columns.length).toBe(2);
    expect([...columns.arrivedSeconds]).toEqual([0, 0.95]);
    expect([...columns.part]).toEqual([0, 9]);
  });

  test("what did not complete, or not before the drain was over, is infinitely slow", () => {
    const { columns } = evidenceOf([answered("ok", 0, 40), shed("shed", 1), answered("too late", 2, 1600)]);
    expect([...columns.ttftMs]).toEqual([40, Infinity, Infinity]);
    expect([...columns.keptSlo]).toEqual([1, 0, 0]);
  });

  test("TTFT is taken apart: the client, the router, the worker", () => {
    const { columns } = evidenceOf([answered("one", 0, 40), answered("single", 1, 40, { outputTokens: 1 })]);
    expect([columns.lagMs[0], columns.routerMs[0], columns.workerMs[0]]).toEqual([1, 2, 37]);
    expect(columns.tpotMs[0]).toBe(10);
    expect(columns.tpotMs[1]).toBeNaN();
  });

  test("a turn moved if the turn before it went elsewhere, also one before the window", () => {
    const talk = (id: string, turn: number, atMs: number, worker: string): RequestRecord =>
      answered(id, atMs, 10, { session: "s", turn, worker });
    const { columns } = evidenceOf([talk("0", 0, -500, "a"), talk("1", 1, 100, "a"), talk("2", 2, 200, "b")]);
    expect([...columns.moved]).toEqual([0, 1]);
  });
});

describe("where the time to the first token went", () => {
  test("no request computes faster than the fastest with as many tokens; the rest is waiting", () => {
    const group = withEvidence(
      "kv",
      evidenceOf([
        answered("alone", 0, 43),
        answered("behind", 1, 103),
        answered("cached", 2, 13, { observedCachedTokens: 576 }),
      ]),
    );
    const fastest = new FastestPrefill();
    fastest.add(group);
    expect([fastest.of(64), fastest.of(640), fastest.of(641)]).toEqual([10, 40, 40]);
    const anatomy = anatomyOf(group, fastest);
    expect(anatomy).toMatchObject({ requests: 3, all: { clientMs: 1, routerMs: 2, prefillMs: 30, waitingMs: 20 } });
    expect(anatomy?.slowest.waitingMs).toBe(60);
  });

  test("more tokens that were faster are the bound for fewer", () => {
    const fastest = new FastestPrefill();
    fastest.add(
      withEvidence("kv", evidenceOf([answered("slow", 0, 83), answered("long", 1, 33, { promptTokens: 1280 })])),
    );
    expect(fastest.of(640)).toBe(30);
    expect(fastest.of(5000)).toBe(Infinity);
  });
});

describe("how evenly work lay", () => {
  test("waiting by worker, the longest time on one, and turns that stayed", () => {
    const group = withEvidence(
      "kv",
      evidenceOf([
        answered("1", 0, 43, { session: "s", worker: "a" }),
        answered("2", 1, 103, { session: "s", turn: 1, worker: "b" }),
        answered("3", 2, 43, { session: "s", turn: 2, worker: "b" }),
      ]),
    );
    const fastest = new FastestPrefill();
    fastest.add(group);
    const balance = balanceOf(group, fastest, 1);
    expect(balance).toMatchObject({ waitSpikeMs: 30, waitSkew: 2, workerTtftMaxMs: 100, stickyShare: 0.5 });
    // The second on b came while the first was there.
    expect(balance?.crowded).toMatchObject({ limit: 1, share: 1 / 3 });
  });

  test("is unknown where nobody says who served", () => {
    const group = withEvidence("url", evidenceOf([answered("1", 0, 43, { worker: "unavailable" })]));
    expect(balanceOf(group, new FastestPrefill(), undefined)).toBeUndefined();
  });
});

describe("the same request in both arms", () => {
  const ids = new IdNumbers();
  const baseline = withEvidence(
    "rr",
    evidenceOf([answered("1", 0, 40), answered("2", 1, 40), answered("3", 2, 40)], ids),
  );

  test("is paired by its id, whatever else each arm got to", () => {
    const arm = withEvidence("kv", evidenceOf([answered("2", 0, 30), shed("1", 1), answered("4", 2, 1)], ids));
    // Its prompt is another where it was shed, so this pair says that ids may lie.
    expect(pairedView(baseline, arm)).toBeUndefined();
    const same = withEvidence(
      "kv",
      evidenceOf([answered("2", 0, 30), { ...shed("1", 1), promptTokens: 640 }, answered("4", 2, 1)], ids),
    );
    const view = pairedView(baseline, same);
    expect(view?.ttft).toMatchObject({ pairs: 2, unpaired: 2, faster: 1, slower: 1, onlyBaselineCompleted: 1 });
    expect(view?.bands.map(({ title, pairs }) => [title, pairs])).toEqual([
      ["prompts up to 1,000 tokens", 2],
      ["first turns", 2],
    ]);
  });

  test("needs records of both arms, and runs of the same number", () => {
    expect(pairedView(baseline, groupOf(cellOf("kv")))).toBeUndefined();
    const arm = withEvidence("kv", evidenceOf([answered("1", 0, 30)], ids));
    const otherRun = { ...arm, cells: [cellOf("kv", { run: 2 })] };
    expect(pairedView(baseline, otherRun)).toBeUndefined();
  });

  test("a run that stands for others is paired with each of theirs that differs", () => {
    const arm = withEvidence(
      "kv",
      ...[30, 31].map((ttftMs) => evidenceOf([answered("1", 0, ttftMs), answered("2", 1, ttftMs)], ids)),
    );
    const once = { ...baseline, cells: [cellOf("rr", { repeats: [2] })] };
    expect(pairedView(once, arm)?.ttft).toMatchObject({ pairs: 4, runs: { runs: 2 } });
    const alike = { ...arm, cells: [cellOf("kv", { repeats: [2] })], evidence: arm.evidence?.slice(0, 1) };
    expect(pairedView(once, alike)?.ttft).toMatchObject({ pairs: 2, runs: { runs: 1 } });
  });
});
