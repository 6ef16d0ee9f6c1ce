import * as fc from "fast-check";
import { expect, test } from "vitest";
import { RollingCount } from "./rolling-count.ts";

test("counts what came within the window and forgets the rest", () => {
  const count = new RollingCount(100, 10);
  count.add(1, 1000);
  count.add(2, 1050);
  expect([count.sum(1050), count.sum(1099), count.sum(1101), count.sum(1200)]).toEqual([3, 3, 2, 0]);
});

test("agrees with a list of all that came, slice by slice", () => {
  const steps = fc.array(fc.record({ waitMs: fc.nat(60), amount: fc.nat(3) }), { maxLength: 60 });
  fc.assert(
    fc.property(steps, (all) => {
      const count = new RollingCount(100, 10);
      const came: { slice: number; amount: number }[] = [];
      let nowMs = 0;
      for (const { waitMs, amount } of all) {
        nowMs += waitMs;
        count.add(amount, nowMs);
        const slice = Math.floor(nowMs / 10);
        came.push({ slice, amount });
        const recent = came.filter((each) => each.slice > slice - 10);
        expect(count.sum(nowMs)).toBe(recent.reduce((sum, each) => sum + each.amount, 0));
      }
    }),
  );
});
