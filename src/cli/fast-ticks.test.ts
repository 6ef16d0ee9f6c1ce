import { expect, test } from "vitest";
import { keepTicksFast } from "./fast-ticks.ts";

test("what is kept is what Node makes of a tick", async () => {
  const kept = await keepTicksFast();
  expect(Object.keys(kept)).toContain("callback");
  expect(await keepTicksFast()).toBe(kept);
});
