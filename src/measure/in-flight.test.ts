import * as fc from "fast-check";
import { expect, it } from "vitest";
import { type RequestRecord, requestRecord, UNAVAILABLE } from "../core/request-record.ts";
import { inFlightSteps, loadBalance } from "./in-flight.ts";

const WORKERS = ["a", "b", "c"];
const WINDOW = { startNs: 100, endNs: 200, drainNs: 0 };

function placed(worker: string, fromNs: number, endNs: number | undefined): RequestRecord {
  const account = endNs === undefined ? "unfinished" : "completed";
  return requestRecord({ id: "", intendedNs: fromNs, placedNs: fromNs, endNs, promptTokens: 1, worker, account });
}

it("integrates the counts over the window alone, with what was in flight before it", () => {
  const records = [placed("a", 50, 150), placed("a", 120, 130), placed("b", 190, undefined), placed("b", 10, 90)];
  expect(loadBalance(records, WORKERS, WINDOW)).toEqual({
    workers: [
      { worker: "a", requests: 1, share: 0.5, inFlightMean: 0.6, inFlightMax: 2 },
      { worker: "b", requests: 1, share: 0.5, inFlightMean: 0.1, inFlightMax: 1 },
      { worker: "c", requests: 0, share: 0, inFlightMean: 0, inFlightMax: 0 },
    ],
    // 50 ns at 1 or 2 (10 of them at 2), 40 ns at 0, 10 ns at 1.
    spread: { mean: 0.7, p95: 2, max: 2 },
    meanSkew: expect.closeTo(2.5714, 3),
  });
});

it("sees no peak where one request leaves at the moment the next one comes", () => {
  const balance = loadBalance([placed("a", 100, 150), placed("a", 150, 200)], WORKERS, WINDOW)!;
  expect(balance.workers[0].inFlightMax).toBe(1);
});

it("lists what comes and goes in order of time, whatever order the records are in", () => {
  const steps = inFlightSteps([placed("b", 30, 40), placed("a", 10, 30), placed("c", 20, undefined)], WORKERS)!;
  expect([...steps.timesNs]).toEqual([10, 20, 30, 30, 40]);
  expect([...steps.worker]).toEqual([0, 2, 0, 1, 1]);
  expect([...steps.delta]).toEqual([1, 1, -1, 1, -1]);
});

it("cannot say anything if the target does not name workers", () => {
  expect(loadBalance([placed(UNAVAILABLE, 100, 150)], WORKERS, WINDOW)).toBeUndefined();
});

it("agrees with looking at every moment", () => {
  const request = fc.record({
    worker: fc.constantFrom(...WORKERS),
    fromNs: fc.integer({ min: 50, max: 230 }),
    lastsNs: fc.integer({ min: 0, max: 60 }),
  });
  fc.assert(
    fc.property(fc.array(request, { maxLength: 40 }), (requests) => {
      const records = requests.map(({ worker, fromNs, lastsNs }) => placed(worker, fromNs, fromNs + lastsNs));
      const balance = loadBalance(records, WORKERS, WINDOW)!;
      let spreadSum = 0;
      let spreadMax = 0;
      const sums = [0, 0, 0];
      for (let ns = WINDOW.startNs; ns < WINDOW.endNs; ns++) {
        const counts = WORKERS.map(
          (name) => records.filter((one) => one.worker === name && one.placedNs! <= ns && one.endNs! > ns).length,
        );
        counts.forEach((count, i) => (sums[i] += count));
        const spread = Math.max(...counts) - Math.min(...counts);
        spreadSum += spread;
        spreadMax = Math.max(spreadMax, spread);
      }
      expect(balance.spread.mean).toBeCloseTo(spreadSum / 100, 9);
      expect(balance.spread.max).toBe(spreadMax);
      balance.workers.forEach(({ inFlightMean }, i) => expect(inFlightMean).toBeCloseTo(sums[i] / 100, 9));
    }),
  );
});
