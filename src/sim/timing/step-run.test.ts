import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { runPs, StepClock, stepsToCover } from "./step-run.ts";

const run = fc.record({
  aPs: fc.integer({ min: 1, max: 200_000_000_000 }),
  bPs: fc.nat(50_000_000),
  validSteps: fc.constant(Number.POSITIVE_INFINITY),
});

describe("a run of decode steps", () => {
  it("is covered by the fewest whole steps that last long enough", () => {
    fc.assert(
      fc.property(run, fc.nat(500_000_000_000_000), (affine, ps) => {
        const steps = stepsToCover(affine, ps);
        expect(runPs(affine, steps)).toBeGreaterThanOrEqual(ps);
        if (steps > 1) expect(runPs(affine, steps - 1)).toBeLessThan(ps);
      }),
    );
  });
});

describe("StepClock", () => {
  it("ends at the same nanosecond whether a run is stepped or jumped, from any remainder", () => {
    fc.assert(
      fc.property(run, fc.integer({ min: 1, max: 200 }), fc.nat(999), (affine, steps, remainderPs) => {
        const stepped = new StepClock(5);
        const jumped = new StepClock(5);
        stepped.advance(remainderPs);
        jumped.advance(remainderPs);
        for (let k = 0; k < steps; k++) stepped.advance(affine.aPs + k * affine.bPs);
        expect(jumped.endNs(runPs(affine, steps))).toBe(stepped.nowNs);
        jumped.advance(runPs(affine, steps));
        expect([jumped.nowNs, jumped.remainderPs]).toEqual([stepped.nowNs, stepped.remainderPs]);
      }),
    );
  });

  it("drops the remainder when an idle worker wakes", () => {
    const clock = new StepClock(0);
    clock.advance(1500);
    clock.wakeAt(10);
    expect([clock.nowNs, clock.remainderPs]).toEqual([10, 0]);
  });
});
