import { describe, expect, test } from "vitest";
import { qwenTemplate } from "../../../test/support/model-files.ts";
import { ChatTemplate } from "./chat-template.ts";
import type { ChatMessage } from "../types.ts";

const qwen = new ChatTemplate({ template: qwenTemplate(), specialTokens: {} });
const sent = (source: Record<string, unknown>): ChatMessage => ({ role: String(source["role"]), content: "?", source });
const chat = (template: ChatTemplate, ...messages: ChatMessage[]): string | undefined =>
  template.render({ kind: "chat", messages });

describe("a chat template", () => {
  test("writes a chat as the model was trained on", () => {
    expect(chat(qwen, { role: "system", content: "Be brief." }, { role: "user", content: "Hi" })).toBe(
      "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
    );
  });

  test("leaves the header of the answer out if told so", () => {
    const messages = [{ role: "system", content: "x" }];
    expect(qwen.render({ kind: "chat", messages, addsGenerationPrompt: false })).toBe(
      "<|im_start|>system\nx<|im_end|>\n",
    );
  });

  test("leaves an answer open if told so, behind the header it would have had", () => {
    const messages = [
      { role: "user", content: "Hi" },
      { role: "assistant", content: "Well, " },
    ];
    expect(qwen.render({ kind: "chat", messages, continuesFinalMessage: true, addsGenerationPrompt: false })).toBe(
      `${chat(qwen, messages[0])}Well, `,
    );
  });

  test("gives templates the arguments of tool calls as objects, as engines do", () => {
    const call = { id: "1", type: "function", function: { name: "add", arguments: '{"a":1,"b":[2]}' } };
    const text = chat(
      qwen,
      sent({ role: "user", content: "1+2" }),
      sent({ role: "assistant", content: null, tool_calls: [call] }),
    );
    expect(text).toContain('<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": [2]}}\n</tool_call>');
  });

  test("writes tools, and takes arguments of its own", () => {
    const template = new ChatTemplate({
      template: "{{ bos_token }}{% if tools %}{{ tools | length }}{% endif %}{{ enable_thinking }}",
      specialTokens: { bos_token: "<s>" },
    });
    const messages = [{ role: "user", content: "x" }];
    const prompt = { kind: "chat", messages, tools: [{}, {}], templateArguments: { enable_thinking: false } } as const;
    expect(template.render(prompt)).toBe("<s>2false");
    expect(template.render({ kind: "chat", messages, templateArguments: { enable_thinking: true } })).toBe("<s>true");
  });

  test("joins the text of parts, unless the template walks through them itself", () => {
    const parts = sent({
      role: "user",
      content: [
        { type: "text", text: "a" },
        { type: "text", text: "b" },
      ],
    });
    expect(chat(qwen, parts)).toContain("<|im_start|>user\na\nb<|im_end|>");
    const walks = new ChatTemplate({
      template:
        "{% for message in messages %}{% for part in message['content'] %}[{{ part.text }}]{% endfor %}{% endfor %}",
      specialTokens: {},
    });
    expect(chat(walks, parts)).toBe("[a][b]");
  });

  test("tells images apart", () => {
    const image = (url: string): ChatMessage =>
      sent({ role: "user", content: [{ type: "image_url", image_url: { url } }] });
    expect(chat(qwen, image("data:1"))).not.toBe(chat(qwen, image("data:2")));
    expect(chat(qwen, image("data:1"))).toBe(chat(qwen, image("data:1")));
  });

  test("has no text for a chat that it refuses", () => {
    const strict = new ChatTemplate({ template: "{{ raise_exception('no') }}", specialTokens: {} });
    expect(chat(strict, { role: "user", content: "x" })).toBeUndefined();
  });
});
