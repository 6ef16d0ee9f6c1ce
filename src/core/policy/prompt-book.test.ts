import { describe, expect, it } from "vitest";
import { type ForeseenPrompt, PromptBook } from "./prompt-book.ts";

const MS = 1e6;

function foreseen(over: Partial<ForeseenPrompt> = {}): ForeseenPrompt {
  return { isBehindOthers: false, untilStepNs: 10 * MS, doneInNs: 100 * MS, pendingNs: 80 * MS, ...over };
}

describe("PromptBook", () => {
  it("counts what it does not know of as a whole", () => {
    expect(new PromptBook().leftNs(0, 0, 80 * MS)).toBe(80 * MS);
    expect(new PromptBook().together(0, 0)).toBe(0);
  });

  it("leaves less the longer a prompt is under way, never more than all of it", () => {
    const book = new PromptBook();
    book.placed(0, 0, foreseen());
    const left = [0, 20, 50, 90, 100].map((ms) => book.leftNs(0, ms * MS, 80 * MS) / MS);
    expect(left).toEqual([80, 80, 50, 10, 0]);
  });

  it("takes one that is late for as late again", () => {
    const book = new PromptBook();
    book.placed(0, 0, foreseen());
    expect(book.leftNs(0, 130 * MS, 80 * MS)).toBe(30 * MS);
    expect(book.leftNs(0, 900 * MS, 80 * MS)).toBe(80 * MS);
  });

  it("counts whole what others have sent there since", () => {
    const book = new PromptBook();
    book.placed(0, 0, foreseen());
    expect(book.leftNs(0, 90 * MS, 120 * MS)).toBe(50 * MS);
  });

  it("counts together whoever comes before the next step begins", () => {
    const book = new PromptBook();
    book.placed(0, 0, foreseen());
    book.placed(0, 5 * MS, foreseen({ isBehindOthers: true }));
    expect(book.together(0, 10 * MS)).toBe(2);
    expect(book.together(0, 11 * MS)).toBe(0);
    expect(book.together(1, 0)).toBe(0);
  });

  it("knows for how long the eldest of those has waited", () => {
    const book = new PromptBook();
    expect(book.waitedNs(0, 5 * MS)).toBe(0);
    book.placed(0, 0, foreseen());
    book.placed(0, 5 * MS, foreseen({ isBehindOthers: true }));
    expect(book.waitedNs(0, 10 * MS)).toBe(10 * MS);
    // Theirs has begun: whoever comes now is computed with nobody yet.
    expect(book.waitedNs(0, 11 * MS)).toBe(0);
    book.placed(0, 20 * MS, foreseen({ isBehindOthers: true }));
    expect(book.waitedNs(0, 30 * MS)).toBe(10 * MS);
  });

  it("has a prompt behind a batch under way wait for its end, with whoever comes until then", () => {
    const book = new PromptBook();
    book.placed(0, 0, foreseen());
    book.placed(0, 20 * MS, foreseen({ isBehindOthers: true }));
    expect(book.together(0, 99 * MS)).toBe(1);
    expect(book.together(0, 101 * MS)).toBe(0);
  });

  it("learns by how much first tokens are later than foreseen", () => {
    const book = new PromptBook();
    for (let i = 0; i < 200; i++) {
      book.placed(0, i * 1e9, foreseen());
      book.firstToken(0, i * 1e9 + 150 * MS, 150 * MS);
    }
    book.placed(0, 300e9, foreseen());
    expect(book.leftNs(0, 300e9 + 100 * MS, 80 * MS) / MS).toBeCloseTo(50, 0);
  });

  it("learns nothing from a prompt that waited behind another, or from an older one", () => {
    const book = new PromptBook();
    book.placed(0, 0, foreseen({ isBehindOthers: true }));
    book.firstToken(0, 400 * MS, 400 * MS);
    book.placed(0, 1e9, foreseen());
    book.firstToken(0, 1.1e9, 700 * MS);
    expect(book.leftNs(0, 1e9 + 90 * MS, 80 * MS) / MS).toBeCloseTo(10);
  });

  it("forgets a replica", () => {
    const book = new PromptBook();
    book.placed(0, 0, foreseen());
    book.forget(0);
    expect(book.leftNs(0, 90 * MS, 80 * MS)).toBe(80 * MS);
  });
});
