import { describe, expect, test } from "vitest";
import { promptText, promptTokens } from "./prompt-content.ts";
import { promptOf } from "./prompt.ts";

describe("the content of a prompt", () => {
  test("is one word per token, and the same for the same segment in any prompt", () => {
    const alone = promptText(promptOf([{ id: 3, tokens: 40 }]), 1);
    const behind = promptText(
      promptOf([
        { id: 2, tokens: 5 },
        { id: 3, tokens: 60 },
      ]),
      1,
      5,
    );
    expect(alone.split(" ")).toHaveLength(40);
    expect(behind.startsWith(`${alone} `)).toBe(true);
  });

  test("differs by seed and by segment", () => {
    const contents = [
      promptText(promptOf([{ id: 3, tokens: 40 }]), 1),
      promptText(promptOf([{ id: 4, tokens: 40 }]), 1),
    ];
    contents.push(promptText(promptOf([{ id: 3, tokens: 40 }]), 2));
    expect(new Set(contents).size).toBe(3);
  });

  test("stays inside the vocabulary", () => {
    const tokens = promptTokens(promptOf([{ id: -1, tokens: 2000 }]), 1, 50);
    expect(Math.max(...tokens)).toBe(49);
    expect(new Set(tokens).size).toBe(50);
  });
});
