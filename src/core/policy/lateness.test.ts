import { describe, expect, it } from "vitest";
import { chargeLateness, latenessMs } from "./lateness.ts";
import { Offers } from "./offers.ts";

const MS = 1e6;
const LATE_NS = 100 * MS;

/** What is added to the costs of candidates with these first tokens, which hold so much of the prompt. */
function charged(firstTokensMs: readonly number[], held: readonly number[], lateNs: number = LATE_NS): number[] {
  const offers = new Offers();
  offers.firstTokensNs.set(firstTokensMs.map((ms) => ms * MS));
  offers.held.set(held);
  offers.costs.fill(1_000);
  chargeLateness(offers, held.length, Math.max(...held), lateNs, 2);
  expect([...offers.lateness.subarray(0, held.length)]).toEqual(
    [...offers.costs.subarray(0, held.length)].map((cost) => cost - 1_000),
  );
  return [...offers.lateness.subarray(0, held.length)];
}

describe("lateness", () => {
  it("is charged for the time after the mark alone", () => {
    expect(charged([99, 100, 130], [5, 5, 5])).toEqual([0, 0, 60]);
  });

  it("is nothing while nobody knows what is late", () => {
    expect(charged([99, 5_000], [5, 5], 0)).toEqual([0, 0]);
    expect(latenessMs(5_000 * MS, 0, 2)).toBe(0);
  });

  it("is no less for whoever would compute again what another holds than for the best of the holders", () => {
    expect(charged([130, 120, 20, 150], [5, 5, 0, 3])).toEqual([60, 40, 40, 100]);
  });

  it("leaves the cold alone where a holder is in time", () => {
    expect(charged([80, 130, 20], [5, 5, 0])).toEqual([0, 60, 0]);
  });

  it("tells all apart where nobody holds anything", () => {
    expect(charged([130, 20], [0, 0])).toEqual([60, 0]);
  });
});
