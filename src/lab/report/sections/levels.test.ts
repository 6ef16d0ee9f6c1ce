import { describe, expect, test } from "vitest";
import { levelColumn } from "./levels.ts";

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
