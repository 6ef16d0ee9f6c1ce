import { expect, test } from "vitest";
import { WordCache } from "./word-cache.ts";

test("of pieces that all belong in one place a few are kept, and the others are unknown at once", () => {
  const cache = new WordCache(1024);
  const out = new Uint32Array(4);
  const words = Array.from({ length: 500 }, (_, i) => `word ${i}`);
  words.forEach((word, i) => cache.write(word, 0, word.length, 7, Int32Array.of(i), 1));
  const known = words.filter((word) => cache.read(word, 0, word.length, 7, out, 0) === 1);
  expect(known).toEqual(words.slice(0, 32));
  cache.read("word 3", 0, 6, 7, out, 0);
  expect(out[0]).toBe(3);
});
