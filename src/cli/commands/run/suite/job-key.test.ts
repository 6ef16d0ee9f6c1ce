import { expect, test } from "vitest";
import { JobKeys } from "./job-key.ts";

test("results of one policy do not depend on code that only another one has", () => {
  const all = new JobKeys([]).key("round-robin", {});
  expect(new JobKeys(["warmpath"]).key("round-robin", {})).not.toBe(all);
  expect(new JobKeys(["warmpath"]).key("warmpath", {})).toBe(all);
});

test("code that others import stays a part of what their results follow from", () => {
  // Load only is the cost of kv-cost without its cache.
  const all = new JobKeys([]).key("load-only", {});
  expect(new JobKeys(["kv-cost"]).key("load-only", {})).toBe(all);
});
