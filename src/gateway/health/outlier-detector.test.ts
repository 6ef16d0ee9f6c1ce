import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type AttemptVerdict, OutlierDetector } from "./outlier-detector.ts";

const OPTIONS = {
  windowMs: 1000,
  minRequests: 10,
  excessShare: 0.2,
  deviations: 3,
  timeoutsInRow: 2,
  maxEjectedShare: 0.5,
};

/** Tells of so many requests in turns of ten, of which so many fail, and returns the last reason to eject. */
function tell(detector: OutlierDetector, worker: string, requests: number, failedOfTen: number): string | undefined {
  let reason: string | undefined;
  for (let i = 0; i < requests; i++)
    reason = detector.observed(worker, i % 10 < failedOfTen ? "failure" : "success", 0) ?? reason;
  return reason;
}

describe("outliers", () => {
  test("are workers that fail far more often than the others, though never many times in a row", () => {
    const detector = new OutlierDetector(OPTIONS);
    for (const worker of ["b", "c", "d"]) expect(tell(detector, worker, 50, 0)).toBeUndefined();
    expect(tell(detector, "a", 50, 4)).toMatch(/^\d+ % of its requests failed, of the others' 0 %$/);
  });

  test("are not workers of a fleet in which all fail alike, nor those that fail a little more", () => {
    const detector = new OutlierDetector(OPTIONS);
    for (const worker of ["b", "c", "d"]) tell(detector, worker, 50, 4);
    expect(tell(detector, "a", 50, 4)).toBeUndefined();
    const calm = new OutlierDetector(OPTIONS);
    for (const worker of ["b", "c", "d"]) tell(calm, worker, 50, 0);
    expect(tell(calm, "a", 100, 1)).toBeUndefined();
  });

  test("cannot be told from a few requests, nor without others to compare with", () => {
    const detector = new OutlierDetector(OPTIONS);
    expect(tell(detector, "a", 100, 5)).toBeUndefined();
    tell(detector, "b", 50, 0);
    expect(tell(detector, "c", 9, 9)).toBeUndefined();
  });

  test("are told by what is within the window", () => {
    const detector = new OutlierDetector(OPTIONS);
    tell(detector, "b", 50, 0);
    tell(detector, "a", 9, 9);
    expect(detector.observed("a", "failure", 2000)).toBeUndefined();
  });

  test("are workers that let requests run into deadlines one after another", () => {
    const detector = new OutlierDetector(OPTIONS);
    const verdicts: AttemptVerdict[] = ["timeout", "success", "timeout", "failure", "timeout", "timeout"];
    const reasons = verdicts.map((verdict) => detector.observed("a", verdict, 0));
    expect(reasons.slice(0, -1)).toEqual([undefined, undefined, undefined, undefined, undefined]);
    expect(reasons.at(-1)).toBe("2 requests in a row ran into a deadline");
  });

  test("begin anew when they are forgotten", () => {
    const detector = new OutlierDetector(OPTIONS);
    detector.observed("a", "timeout", 0);
    detector.forget("a");
    expect(detector.observed("a", "timeout", 0)).toBeUndefined();
  });

  test("are judged the same under any name", () => {
    const attempt = fc.record({
      worker: fc.constantFrom("a", "b", "c"),
      verdict: fc.constantFrom<AttemptVerdict>("success", "failure", "timeout"),
    });
    const renamed: Readonly<Record<string, string>> = { a: "c", b: "a", c: "b" };
    fc.assert(
      fc.property(fc.array(attempt, { maxLength: 200 }), (attempts) => {
        const one = new OutlierDetector(OPTIONS);
        const other = new OutlierDetector(OPTIONS);
        for (const [nowMs, { worker, verdict }] of attempts.entries()) {
          expect(other.observed(renamed[worker], verdict, nowMs)).toBe(one.observed(worker, verdict, nowMs));
        }
      }),
    );
  });

  test("are never so many that more than the allowed share of the fleet is shut out", () => {
    fc.assert(
      fc.property(fc.nat(300), fc.nat(300), fc.double({ min: 0, max: 1, noNaN: true }), (workers, begin, share) => {
        const detector = new OutlierDetector({ ...OPTIONS, maxEjectedShare: share });
        let excluded = begin;
        while (detector.mayEject(workers, excluded)) excluded++;
        expect(excluded).toBeLessThanOrEqual(Math.max(begin, workers * share));
      }),
    );
    expect(new OutlierDetector(OPTIONS).mayEject(1, 0)).toBe(false);
    expect(new OutlierDetector(OPTIONS).mayEject(2, 0)).toBe(true);
  });
});
