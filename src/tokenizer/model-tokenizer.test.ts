import fc from "fast-check";
import { afterEach, describe, expect, test, vi } from "vitest";
import { qwenTemplate, trainedFile } from "../../test/support/model-files.ts";
import { ByteBpe } from "./bpe/byte-bpe.ts";
import { readTokenizerJson } from "./bpe/tokenizer-json.ts";
import { ChatTemplate, type ChatTemplateSource } from "./template/chat-template.ts";
import { ModelTokenizer } from "./model-tokenizer.ts";
import type { ChatMessage } from "./types.ts";

const definition = readTokenizerJson(
  trainedFile("the quick brown fox said to the user that the assistant is quick ".repeat(4), 80),
);
const bpe = new ByteBpe(definition);
const QWEN: ChatTemplateSource = { template: qwenTemplate(), specialTokens: {} };
/** Writes the number of messages first, so that every turn changes the text from its start. */
const UNSTABLE: ChatTemplateSource = {
  template:
    "{{ messages | length }}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>{% endfor %}",
  specialTokens: {},
};
const message = fc.record({
  role: fc.constantFrom("user", "assistant", "tool", "system"),
  content: fc.oneof(fc.lorem({ maxCount: 80 }), fc.constantFrom("", " ", "\n", "<|im_end|>", "'ll 12345 日本語\n\n")),
});

afterEach(() => vi.restoreAllMocks());

describe.each([
  ["a template that only appends", QWEN],
  ["a template that rewrites the start of the text every turn", UNSTABLE],
])("a growing chat under %s", (_, chatTemplate) => {
  test("has the tokens of its whole text at every turn", () => {
    const tokenizer = new ModelTokenizer({ definition, chatTemplate });
    const template = new ChatTemplate(chatTemplate);
    fc.assert(
      fc.property(fc.array(message, { minLength: 1, maxLength: 12 }), (messages) => {
        for (let turns = 1; turns <= messages.length; turns++) {
          const prompt = { kind: "chat", messages: messages.slice(0, turns) } as const;
          expect(tokenizer.encode(prompt)).toEqual(bpe.encode(template.render(prompt) ?? "refused"));
        }
      }),
      { numRuns: 60 },
    );
  });

  test("costs its new text", () => {
    const tokenizer = new ModelTokenizer({ definition, chatTemplate });
    const long = (role: string, i: number): ChatMessage => ({
      role,
      content: `${i} the quick brown fox. `.repeat(200),
    });
    const messages = Array.from({ length: 10 }, (__, i) => long(i % 2 === 0 ? "user" : "assistant", i));
    tokenizer.encode({ kind: "chat", messages });
    const encode = vi.spyOn(ByteBpe.prototype, "encodePlain");
    const added = long("user", 10);
    tokenizer.encode({ kind: "chat", messages: [...messages, added] });
    const chars = encode.mock.calls.reduce((sum, [text]) => sum + text.length, 0);
    expect(chars).toBeGreaterThanOrEqual(added.content.length);
    expect(chars).toBeLessThan(added.content.length + 500);
  });
});

describe("a model's tokenizer", () => {
  test("frames texts as the model's post-processor does, and not chats", () => {
    const framed = new ModelTokenizer({ definition: { ...definition, textPrefix: [1000] }, chatTemplate: QWEN });
    expect([...framed.encode({ kind: "text", text: "the fox" })]).toEqual([1000, ...bpe.encode("the fox")]);
    expect(framed.encode({ kind: "chat", messages: [{ role: "user", content: "the fox" }] })).not.toContain(1000);
  });

  test("gives a chat that its template refuses the tokens of its texts", () => {
    const refusing = { template: "{{ raise_exception('no') }}", specialTokens: {} };
    const tokenizer = new ModelTokenizer({ definition, chatTemplate: refusing });
    const tokens = tokenizer.encode({ kind: "chat", messages: [{ role: "user", content: "hello" }] });
    expect(tokens).toEqual(bpe.encode("user\nhello\n"));
  });

  test("passes tokens through", () => {
    const tokens = Uint32Array.of(1, 2, 3);
    expect(new ModelTokenizer({ definition }).encode({ kind: "tokens", tokens })).toBe(tokens);
  });
});
