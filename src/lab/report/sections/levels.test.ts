import { describe, expect, test } from "vitest";
import { levelColumn, levelList } from "./levels.ts";

describe("how levels are named in tables", () => {
  test.each([
    [
      "by concurrency",
      [
        { concurrency: 40, workers: 2 },
        { concurrency: 80, workers: 2 },
      ],
      "Concurrency",
      "80",
    ],
    [
      "by rate",
      [
        { rateRps: 1.5, workers: 2 },
        { rateRps: 3, workers: 2 },
      ],
      "Arrivals/s",
      "3",
    ],
    [
      "by workers, where the load is one",
      [
        { speed: 1, workers: 2 },
        { speed: 1, workers: 4 },
      ],
      "Workers",
      "4",
    ],
    [
      "by both",
      [
        { concurrency: 40, workers: 2 },
        { concurrency: 80, workers: 4 },
      ],
      "Concurrency, workers",
      "80, 4",
    ],
    [
      "in words, where loads are of different kinds",
      [
        { concurrency: 40, workers: 2 },
        { rateRps: 3, workers: undefined },
      ],
      "Level",
      "3 arrivals/s",
    ],
  ])("%s", (_, levels, title, last) => {
    const column = levelColumn({ levels });
    expect([column.title, column.of(levels[1])]).toEqual([title, last]);
  });
});

test("levels that are named by load and workers stay apart in a row", () => {
  const levels = [
    { concurrency: 8, workers: 2 },
    { concurrency: 16, workers: 4 },
  ];
  expect(levelList(levels, levelColumn({ levels }))).toBe("(8, 2), (16, 4)");
  expect(levelList(levels.slice(0, 1), levelColumn({ levels }))).toBe("8, 2");
  const loads = levels.map((level) => ({ ...level, workers: 2 }));
  expect(levelList(loads, levelColumn({ levels: loads }))).toBe("8, 16");
});
