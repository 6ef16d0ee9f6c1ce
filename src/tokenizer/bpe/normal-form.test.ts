import fc from "fast-check";
import { afterEach, describe, expect, test, vi } from "vitest";
import type { NormalForm } from "./definition.ts";
import { normalized } from "./normal-form.ts";

const FORMS: readonly NormalForm[] = ["NFC", "NFD", "NFKC", "NFKD"];

/** Marks of many classes and of none, marks that come apart, halves of pairs, and letters with marks of their own. */
const MARKS = [
  ..."\u0301 \u0316 \u0327 \u0344 \u0345 \u0340 \u05b4 \u0651 \u064c \u093c \u094d \u0f71 \u0f73 \u302a \u3099".split(
    " ",
  ),
  ..."\u0903 \u09be \u034f \u20e3 \u{1d165} \u{1d16e} \u{1e8d0} \uff9e \uff9f \ud834 \udd65".split(" "),
];
const OTHERS = ["a", "\u1ebf", "\u00e9", "か", "\u1100", "\u1161", "😀", " ", "x".repeat(70)];

const run = fc.array(fc.constantFrom(...MARKS), { minLength: 1, maxLength: 200 }).map((marks) => marks.join(""));
const text = fc.array(fc.oneof(run, fc.constantFrom(...OTHERS)), { maxLength: 12 }).map((parts) => parts.join(""));

afterEach(() => vi.restoreAllMocks());

describe("normal forms", () => {
  test.each(FORMS)("are JavaScript's own: %s", (form) => {
    fc.assert(
      fc.property(text, (any) => {
        expect(normalized(any, form)).toBe(any.normalize(form));
      }),
      { numRuns: 300 },
    );
  });

  test("are asked for with the marks of long runs in their order already, which takes many times as long otherwise", () => {
    const normalize = vi.spyOn(String.prototype, "normalize");
    const out = normalized(`a${"\u0301\u0316".repeat(1000)}b`, "NFC");
    const asked = normalize.mock.contexts.map(String).find((given) => given.length > 1000);
    expect(asked).toBe(`a${"\u0316".repeat(1000)}${"\u0301".repeat(1000)}b`);
    expect(out).toHaveLength(2001);
  });

  test("are asked for as the text stands where no run is long", () => {
    const normalize = vi.spyOn(String.prototype, "normalize");
    const words = "e\u0301te\u0301 ".repeat(1000);
    normalized(words, "NFC");
    expect(normalize.mock.contexts.map(String)).toEqual([words]);
  });
});
