import { expect, test } from "vitest";
import { joinedRows } from "./feed-client.ts";

const rowsAt = (...times: number[]): number[][] => times.map((atMs) => [atMs, 6]);

test("a page that was cut off has what the server kept meanwhile, and its own rows from before", () => {
  const seen = rowsAt(1000, 1400, 1800);
  expect(joinedRows(seen, rowsAt(1000, 2000, 3000))).toEqual(rowsAt(1000, 1400, 1800, 2000, 3000));
  expect(joinedRows([], rowsAt(1000, 2000))).toEqual(rowsAt(1000, 2000));
  expect(joinedRows(seen, rowsAt(1000))).toEqual(seen);
});
