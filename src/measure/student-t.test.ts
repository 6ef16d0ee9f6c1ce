import { describe, expect, test } from "vitest";
import { studentQuantile, studentTail } from "./student-t.ts";

describe("Student's t", () => {
  // From printed tables.
  test.each([
    [1, 12.706, 0.025],
    [2, 4.303, 0.025],
    [4, 2.776, 0.025],
    [5, 4.032, 0.005],
    [10, 1.812, 0.05],
    [30, 3.385, 0.001],
  ])("with %i degrees of freedom exceeds %f with a chance of %f", (degrees, t, chance) => {
    expect(studentTail(t, degrees)).toBeCloseTo(chance, 4);
    expect(studentQuantile(chance, degrees)).toBeCloseTo(t, 2);
  });

  test("is symmetric, and certain at the ends", () => {
    expect(studentTail(-1.3, 7)).toBeCloseTo(1 - studentTail(1.3, 7), 12);
    expect(studentTail(0, 3)).toBe(0.5);
    expect(studentQuantile(0.9, 6)).toBeCloseTo(-studentQuantile(0.1, 6), 12);
    expect([studentTail(Infinity, 3), studentTail(-Infinity, 3)]).toEqual([0, 1]);
  });
});
