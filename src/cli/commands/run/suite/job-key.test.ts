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

test("a part that only one policy uses is its own, and one that two use is not", () => {
  const files = (changed: string): { path: string; content: string }[] =>
    Object.entries({
      "core/policy/registry.ts": 'import { ours } from "./ours.ts"; import { theirs } from "./theirs.ts";',
      "core/policy/ours.ts": 'import { part } from "./part.ts"; import { both } from "./both.ts";',
      "core/policy/ours-knobs.ts": "",
      "core/policy/part.ts": 'import { deeper } from "./deeper.ts";',
      "core/policy/deeper.ts": 'import { time } from "../time.ts";',
      "core/policy/both.ts": "",
      "core/policy/theirs.ts": 'import { both } from "./both.ts";',
      "core/time.ts": "",
    }).map(([path, content]) => ({ path, content: path.endsWith(changed) ? `${content} // changed` : content }));
  const keyOf = (policy: string, changed: string): string => new JobKeys(["ours"], files(changed)).key(policy, {});
  for (const own of ["ours.ts", "ours-knobs.ts", "part.ts", "deeper.ts"]) {
    expect(keyOf("theirs", own)).toBe(keyOf("theirs", "none"));
    expect(keyOf("ours", own)).not.toBe(keyOf("ours", "none"));
  }
  for (const shared of ["both.ts", "time.ts", "registry.ts", "theirs.ts"]) {
    expect(keyOf("theirs", shared)).not.toBe(keyOf("theirs", "none"));
  }
});
