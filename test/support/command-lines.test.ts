import { expect, test } from "vitest";
import { exampleLines, shellLines, warmpathCalls } from "./command-lines.ts";

test("the lines of a page are those of its fences for a shell, joined where they go on", () => {
  const page = ["```sh", "warmpath up \\", "  --port 1", "```", "warmpath key", "```json", "warmpath", "```"].join(
    "\n",
  );
  expect(shellLines(page)).toEqual(["warmpath up    --port 1", ""]);
  expect(exampleLines("Examples:\n  $ warmpath up\n  $ warmpath run a \\\n      --plan\n")).toEqual([
    "warmpath up",
    "warmpath run a --plan",
  ]);
});

test.each([
  ["npx warmpath run a --levels 60,120   # a comment", [["run", "a", "--levels", "60,120"]]],
  [
    "warmpath worker --port 1 & warmpath worker --port 2 &",
    [
      ["worker", "--port", "1"],
      ["worker", "--port", "2"],
    ],
  ],
  [`A=b warmpath load --body '{"a": 1}'`, [["load", "--body", '{"a": 1}']]],
  ["echo '{}' | warmpath explain - --policy product", [["explain", "-", "--policy", "product"]]],
  ["kill -HUP 1", []],
  ["helm install warmpath deploy/helm/warmpath", []],
])("calls in %s", (line, calls) => {
  expect(warmpathCalls(line)).toEqual(calls);
});
