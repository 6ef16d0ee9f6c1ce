import pc from "picocolors";
import { describe, expect, test } from "vitest";
import { displayNumber, tableLines } from "./table.ts";

const COLUMNS = [
  { title: "worker", align: "left" },
  { title: "cost", align: "right" },
  { title: "", align: "left" },
] as const;

describe("a table", () => {
  test("lines up names on the left and numbers on the right, without spaces at the end", () => {
    const rows = [{ cells: ["a", "7", ""] }, { cells: ["longer name", "12345", "◀"], highlighted: true }];
    expect(tableLines(COLUMNS, rows, pc.createColors(false))).toEqual([
      "worker        cost",
      "───────────  ─────  ─",
      "a                7",
      "longer name  12345  ◀",
    ]);
  });

  test("colours the highlighted row where colours are wanted", () => {
    const lines = tableLines(COLUMNS, [{ cells: ["a", "7", ""], highlighted: true }], pc.createColors(true));
    expect(lines.at(-1)).toBe("\u001b[32ma          7\u001b[39m");
  });
});

test.each([
  [90, "90"],
  [0.1 + 0.2, "0.3"],
  [-0.0001, "0"],
  [Infinity, "∞"],
  [-Infinity, "-∞"],
])("the number %d is shown as %s", (value, shown) => {
  expect(displayNumber(value)).toBe(shown);
});
