import { describe, expect, test } from "vitest";
import { duration, gigabytes, ms, number, percent, points, signed, signedPercent, whole } from "./format.ts";

describe("numbers in a report", () => {
  test("have three digits, separators, and a sign where they are changes", () => {
    expect([1234.5, 123.4, 12.34, 1.234, 0].map((value) => number(value))).toEqual([
      "1,235",
      "123",
      "12.3",
      "1.23",
      "0.00",
    ]);
    expect([whole(1234.5), number(2, 0), number(1234.5678, 2)]).toEqual(["1,235", "2", "1,234.57"]);
    expect([signed(1.5), signed(-1.5), signedPercent(-0.123), points(0.0123)]).toEqual([
      "+1.50",
      "−1.50",
      "−12.3 %",
      "+1.2 pp",
    ]);
    expect([percent(0.12345), percent(0.12345, 0), duration(999), duration(1500), gigabytes(1.5e9)]).toEqual([
      "12.3 %",
      "12 %",
      "999 ms",
      "1.50 s",
      "1.5 GB",
    ]);
  });

  test("a change that is rounded to nothing has no sign", () => {
    expect([signed(-0.001), signed(0), signedPercent(0.0001)]).toEqual(["0.00", "0.00", "0.0 %"]);
  });

  test.each([undefined, Number.NaN, Infinity, -Infinity])("%s is a dash everywhere", (value) => {
    const shown = [whole, number, duration, percent, signed, signedPercent, points, gigabytes].map((show) =>
      show(value),
    );
    expect(new Set(shown)).toEqual(new Set(["–"]));
    expect(percent("unavailable")).toBe("–");
  });

  test("a reading says why it is no number", () => {
    expect(ms({ state: "ok", value: 12.34 })).toBe("12.3");
    expect(ms({ state: "between", low: 1, high: 250 })).toBe("1.00–250");
    expect(ms({ state: "not-reached" })).toBe("not reached");
    expect(ms({ state: "too-few" })).toBe("too few");
    expect(ms({ state: "unavailable" })).toBe("–");
  });
});
