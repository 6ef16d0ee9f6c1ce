import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Account, ACCOUNTS, type Accounting } from "../core/accounts.ts";
import { type RequestRecord, requestRecord } from "../core/request-record.ts";
import { checkAccounting } from "./accounting.ts";
import { measureSnapshots, snapshotMean } from "./snapshots.ts";
import { sloVerdict } from "./slo.ts";
import { accountInWindow, type MeasurementWindow, subWindows } from "./window.ts";
import { measureWindow, WindowMeasures } from "./window-measures.ts";

const MS = 1_000_000;
const WINDOW: MeasurementWindow = { startNs: 0, endNs: 1000 * MS, drainNs: 500 * MS };

let nextId = 0;

/** A request that answered `ttftMs` after `atMs` and then a token every 10 ms. */
function answered(atMs: number, ttftMs: number, tokens = 3, account: Account = "completed"): RequestRecord {
  const times = Float64Array.from({ length: tokens }, (_, i) => (atMs + ttftMs + 10 * i) * MS);
  return requestRecord({
    id: String(nextId++),
    intendedNs: atMs * MS,
    sentNs: (atMs + 1) * MS,
    firstContentNs: times[0],
    lastContentNs: times[tokens - 1],
    endNs: times[tokens - 1],
    promptTokens: 100,
    outputTokens: tokens,
    account,
    tokenTimes: { form: "chunks", timesNs: times },
  });
}

const shed = (atMs: number): RequestRecord =>
  requestRecord({ id: String(nextId++), intendedNs: atMs * MS, endNs: atMs * MS, promptTokens: 9, account: "shed" });

describe("latencies", () => {
  it("start at the intended send time, and the wire time is kept beside it", () => {
    const measures = measureWindow([answered(100, 40)], WINDOW);
    expect(measures.ttftNs.summaries(MS).completed.p50).toBe(40);
    expect(measures.wireTtftNs.summaries(MS).completed.p50).toBe(39);
    expect(measures.scheduleLagNs.summaries(MS).completed.p50).toBe(1);
    expect(measures.e2eNs.summaries(MS).completed.p50).toBe(60);
    expect(measures.tpotNs.summaries(MS).completed.p50).toBe(10);
    expect(measures.itlMs().completed).toMatchObject({ n: 2, mean: 10, p50: 10 });
  });

  it("have no time per token for an answer that came in one piece", () => {
    const whole = { ...answered(0, 500, 40), lastContentNs: 500 * MS, endNs: 500 * MS };
    const measures = measureWindow([whole, answered(1, 5, 2)], WINDOW);
    expect(measures.tpotNs.summaries(MS).offered).toMatchObject({ n: 1, p50: 10 });
    expect(measures.e2eNs.summaries(MS).completed.n).toBe(2);
  });

  it("have no time per token for an answer of one token, which is no failure", () => {
    const measures = measureWindow([answered(0, 5, 1), answered(1, 5, 2)], WINDOW, { tpotMs: 1000 });
    expect(measures.tpotNs.summaries(MS).offered).toMatchObject({ n: 1, p50: 10 });
    expect(measures.goodputShare()).toBe(1);
  });

  it("count the gaps of a broken answer and one that never ended among offered only", () => {
    const measures = measureWindow([answered(0, 5, 5), answered(1, 5, 3, "failed"), shed(2)], WINDOW);
    const { completed, offered } = measures.itlMs();
    expect(completed).toMatchObject({ n: 4, p50: 10 });
    expect(offered).toMatchObject({ n: 8, p50: 10, mean: null, states: { mean: "not-reached" } });
  });

  it("say how many completed answers have unknown gaps", () => {
    const unknown = { ...answered(0, 5, 5), tokenTimes: undefined };
    expect(measureWindow([unknown, answered(1, 5)], WINDOW).withoutTokenTimes).toBe(1);
  });
});

describe("windows", () => {
  it("own a request by its intended arrival, not by when it ends", () => {
    const records = [answered(-1, 40), answered(0, 40), answered(999, 40), answered(1000, 40)];
    expect(measureWindow(records, WINDOW).accounting()).toMatchObject({ offered: 2, completed: 2 });
  });

  it("count what is not settled when the drain is over as unfinished", () => {
    const late = answered(999, 600);
    expect(accountInWindow(late, WINDOW)).toBe("unfinished");
    const measures = measureWindow([late, answered(0, 40)], WINDOW);
    expect(measures.accounting()).toMatchObject({ offered: 2, completed: 1, unfinished: 1 });
    expect(measures.ttftNs.summaries(MS).offered.states.mean).toBe("not-reached");
  });

  it("cut into parts without loss, all followed until the same moment", () => {
    const parts = subWindows(WINDOW, 3);
    expect(parts[0].startNs).toBe(WINDOW.startNs);
    expect(parts[2].endNs).toBe(WINDOW.endNs);
    parts.slice(1).forEach((part, i) => expect(part.startNs).toBe(parts[i].endNs));
    for (const part of parts) expect(part.endNs + part.drainNs).toBe(1500 * MS);
  });

  it("must not be empty", () => {
    expect(() => measureWindow([], { startNs: 5, endNs: 5, drainNs: 0 })).toThrow(/must end after it starts/);
  });
});

describe("goodput", () => {
  it("is the share of offered requests that kept every limit", () => {
    const records = [answered(0, 40), answered(1, 90), answered(2, 40, 3, "failed"), shed(3)];
    expect(measureWindow(records, WINDOW, { ttftMs: 50, tpotMs: 10 }).goodputShare()).toBe(0.25);
    expect(measureWindow(records, WINDOW, { ttftMs: 50, tpotMs: 9 }).goodputShare()).toBe(0);
    expect(measureWindow(records, WINDOW).goodputShare()).toBe(0.5);
    expect(measureWindow([], WINDOW).goodputShare()).toBe(0);
  });

  it("lets an arm meet an SLO by its p95 over offered, and says when it cannot tell", () => {
    const verdict = (records: RequestRecord[]): string => {
      const { ttftNs, tpotNs, e2eNs } = measureWindow(records, WINDOW);
      const offered = {
        ttftMs: ttftNs.summaries(MS).offered,
        tpotMs: tpotNs.summaries(MS).offered,
        e2eMs: e2eNs.summaries(MS).offered,
      };
      return sloVerdict(offered, { ttftMs: 50 });
    };
    const good = Array.from({ length: 100 }, (_, i) => answered(i, 40));
    expect(verdict(good)).toBe("met");
    expect(verdict([...good, ...Array.from({ length: 4 }, (_, i) => shed(i))])).toBe("met");
    expect(verdict([...good, ...Array.from({ length: 9 }, (_, i) => shed(i))])).toBe("missed");
    expect(verdict([...good, ...Array.from({ length: 9 }, (_, i) => answered(i, 51))])).toBe("missed");
    expect(verdict(good.slice(0, 19))).toBe("unknown");
  });
});

describe("accounts", () => {
  it("add up to offered for any mix of outcomes, and merge into those of the whole", () => {
    const account = fc.constantFrom(...ACCOUNTS);
    fc.assert(
      fc.property(fc.array(account), fc.nat({ max: 50 }), (accounts, cut) => {
        const records = accounts.map((one, i) => answered(i, 5, 3, one));
        const whole = measureWindow(records, WINDOW);
        checkAccounting(whole.accounting(), "a test");
        expect(whole.accounting().offered).toBe(accounts.length);
        const merged = new WindowMeasures();
        merged.merge(measureWindow(records.slice(0, cut), WINDOW));
        merged.merge(measureWindow(records.slice(cut), WINDOW));
        expect(merged.accounting()).toEqual(whole.accounting());
        expect(merged.itlMs()).toEqual(whole.itlMs());
        expect(merged.goodputShare()).toBe(whole.goodputShare());
        expect(merged.ttftNs.summaries(MS)).toEqual(whole.ttftNs.summaries(MS));
      }),
      { numRuns: 25 },
    );
  });

  it("are refused where they do not, naming the difference", () => {
    const accounting: Accounting = { ...measureWindow([answered(0, 5)], WINDOW).accounting(), offered: 4 };
    expect(() => checkAccounting(accounting, "kv-cost at 60")).toThrow(
      /accounts of kv-cost at 60 do not add up: 4 offered, completed 1 .* = 1, 3 in no account/,
    );
  });
});

describe("snapshots", () => {
  it("average the parts, which is not the percentile of the whole", () => {
    const calm = Array.from({ length: 50 }, (_, i) => answered(i, 10));
    const bad = Array.from({ length: 50 }, (_, i) => answered(500 + i, 110));
    const parts = measureSnapshots([...calm, ...bad], WINDOW, 2).map(({ ttftMs }) => ttftMs.completed);
    expect(snapshotMean(parts)).toMatchObject({ n: 100, mean: 60, p95: 60, p99: null, states: { p99: "too-few" } });
    expect(measureWindow([...calm, ...bad], WINDOW).ttftNs.summaries(MS).completed.p95).toBe(110);
  });

  it("have no mean of something that one of them did not reach", () => {
    const records = [answered(0, 10), shed(600)];
    const parts = measureSnapshots(records, WINDOW, 2).map(({ ttftMs }) => ttftMs.offered);
    expect(snapshotMean(parts)).toMatchObject({
      mean: null,
      p50: null,
      states: { p50: "not-reached", p95: "too-few" },
    });
    expect(snapshotMean([]).states.mean).toBe("too-few");
  });
});
