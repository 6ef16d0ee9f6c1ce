import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { shellLine } from "./shell-words.ts";

test("words that need no quotes have none", () => {
  expect(shellLine(["warmpath", "run", "h200-sweep", "--levels", "60,120", "--on", "http://127.0.0.1:1"])).toBe(
    "warmpath run h200-sweep --levels 60,120 --on http://127.0.0.1:1",
  );
});

test("a shell takes a line apart into the words it was made of", () => {
  const words = ["my results", "it's", "$HOME", "", "a\\b", "*", "a;b", `"`, "two\nlines", "~", "é"];
  const heard = execFileSync("sh", ["-c", `printf '%s\\0' ${shellLine(words)}`], { encoding: "utf8" });
  expect(heard.split("\0").slice(0, -1)).toEqual(words);
});
