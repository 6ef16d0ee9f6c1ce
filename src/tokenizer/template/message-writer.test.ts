import { Template } from "@huggingface/jinja";
import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { qwenTemplate } from "../../../test/support/model-files.ts";
import { MessageWriter, type WritableMessage } from "./message-writer.ts";

const CHATML =
  "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}" +
  "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

/** Takes the system message, and with tools the first one of the user, off the list; as the templates of Llama 3.1 do. */
const CUTTING =
  "{{ bos_token }}{% if messages[0].role == 'system' %}{% set system = messages[0].content | trim %}{% set messages = messages[1:] %}" +
  "{% else %}{% set system = '' %}{% endif %}<sys>{{ system }}</sys>" +
  "{% if tools %}{% set first = messages[0].content %}{% set messages = messages[1:] %}<first>{{ first }}</first>{% endif %}" +
  "{% for message in messages %}{% set role = message.role %}<{{ role }}>{{ message.content }}" +
  "{% for word in ['a', 'b'] %}{{ word }}{% if not loop.last %}, {% endif %}{% endfor %}</{{ role }}>{% endfor %}" +
  "{% if add_generation_prompt and messages[-1].role != 'assistant' %}<assistant>{% endif %}";

/** Looks to both sides, at the first message and at whose turn it is. */
const NEIGHBOURLY =
  "{% for message in messages %}{% if loop.first %}^{% endif %}{% if loop.index0 % 2 == 0 %}even{% endif %}" +
  "{% if loop.previtem %}<{{ loop.previtem.role }}{% endif %}{{ message.content }}{% if loop.nextitem %}>{{ loop.nextitem.role }}{% endif %}" +
  "{{ messages[0].content }}{% if loop.last %}${% endif %}{% endfor %}";

const message = fc.record({
  role: fc.constantFrom("user", "assistant", "tool", "system"),
  content: fc.constantFrom("a", "b", "", " c ", "<|im_end|>"),
});
const context = { tools: null, bos_token: "<s>", add_generation_prompt: true };
const writable = (messages: readonly object[]): WritableMessage[] =>
  messages.map((one) => ({ kind: "", text: JSON.stringify(one), message: one as Record<string, unknown> }));

describe.each([
  ["ChatML", CHATML],
  ["Qwen2.5", qwenTemplate()],
  ["a template that takes messages off the list", CUTTING],
  ["a template that looks around", NEIGHBOURLY],
])("a chat written by its new messages, under %s", (_, source) => {
  test("is what the template writes of the whole, while it grows, branches and changes its arguments", () => {
    const whole = new Template(source);
    const chats = fc.array(message, { minLength: 1, maxLength: 24 });
    const step = fc.record({
      turns: fc.nat(24),
      tools: fc.boolean(),
      asks: fc.boolean(),
      changed: fc.option(fc.nat(23)),
    });
    fc.assert(
      fc.property(chats, fc.array(step, { minLength: 1, maxLength: 12 }), (messages, steps) => {
        const writer = MessageWriter.for(source, 1_500)!;
        for (const { turns, tools, asks, changed } of steps) {
          const list = messages
            .slice(0, 1 + turns)
            .map((one, i) => (i === changed ? { ...one, content: "changed" } : one));
          const settings = { ...context, tools: tools ? [{ name: "t" }] : null, add_generation_prompt: asks };
          const text = writer.write(writable(list), settings, JSON.stringify([tools, asks]));
          expect(text).toBe(whole.render({ ...settings, messages: list }));
        }
      }),
      { numRuns: 300 },
    );
  });

  test("tells equal messages in different places apart", () => {
    const writer = MessageWriter.for(source)!;
    const whole = new Template(source);
    for (let turns = 1; turns < 30; turns++) {
      const messages = Array.from({ length: turns }, () => ({ role: "user", content: "again" }));
      expect(writer.write(writable(messages), context, "")).toBe(whole.render({ ...context, messages }));
    }
  });

  test("shows the template the head of the chat and what is new", () => {
    const writer = MessageWriter.for(source)!;
    const turns = Array.from({ length: 40 }, (__, i) => ({
      role: i % 2 === 0 ? "user" : "assistant",
      content: `turn ${i}`,
    }));
    writer.write(writable(turns), context, "");
    const render = vi.spyOn(Template.prototype, "render");
    writer.write(writable([...turns, { role: "user", content: "new" }]), context, "");
    const seen = render.mock.calls.map(([items]) => (items as { messages: unknown[] }).messages.length);
    render.mockRestore();
    expect(seen).toHaveLength(1);
    expect(seen[0]).toBeLessThanOrEqual(8);
  });
});

describe("a chat with the writer's own mark in it", () => {
  test("has to be written as a whole", () => {
    const writer = MessageWriter.for(CUTTING)!;
    const messages = [
      { kind: "user", text: "\u0000\ud800warmpath\ud800\u0000", message: { role: "user", content: "x" } },
    ];
    expect(writer.write(messages, context, "")).toBeUndefined();
  });
});
