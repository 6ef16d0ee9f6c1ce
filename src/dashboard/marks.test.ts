import { describe, expect, test } from "vitest";
import { HISTORY_MS } from "./history.ts";
import { Marks } from "./marks.ts";

const WINDOW_MS = 60_000;

describe("a mark", () => {
  test("is clean a whole window after the last request from before it has ended", () => {
    const marks = new Marks(WINDOW_MS);
    marks.add("policy", "kv-cost", 100_000);
    marks.observe(110_000, 25_000);
    expect(marks.all[0].cleanAtMs).toBeNull();
    marks.observe(124_000, 24_000);
    expect(marks.all[0].cleanAtMs).toBe(124_000 + WINDOW_MS);
  });

  test("keeps the moment at which it was found clean", () => {
    const marks = new Marks(WINDOW_MS);
    marks.add("policy", "kv-cost", 100_000);
    marks.observe(101_000, null);
    marks.observe(150_000, 60_000);
    expect(marks.all[0].cleanAtMs).toBe(101_000 + WINDOW_MS);
  });

  test("is forgotten when no chart goes back to it", () => {
    const marks = new Marks(WINDOW_MS);
    marks.add("caches-reset", "caches reset", 0);
    marks.add("policy", "warmpath", HISTORY_MS);
    marks.observe(HISTORY_MS + 1, null);
    expect(marks.all.map(({ label }) => label)).toEqual(["warmpath"]);
  });
});
