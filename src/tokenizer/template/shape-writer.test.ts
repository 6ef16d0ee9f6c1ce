import { Template } from "@huggingface/jinja";
import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { qwenTemplate } from "../../../test/support/model-files.ts";
import { ShapeWriter } from "./shape-writer.ts";

/** As the templates of Llama 3: strips, takes the system message off the list, has spaces of its own. */
const STRIPPING =
  "{{ bos_token }}{% if messages[0].role == 'system' %}{% set system = messages[0].content | trim %}{% set messages = messages[1:] %}" +
  "{% else %}{% set system = '' %}{% endif %}[SYS] {{ system }} [/SYS]" +
  "{% for message in messages %}{% set text = ('[' + message.role + '] ' + message.content) | trim + '\\n' %}" +
  "{% if loop.last and message.content %}last: {% endif %}{{ text }}{{ message.content.lstrip() }}{% endfor %}" +
  "{% if add_generation_prompt %}[assistant]{% endif %}";

/** As the templates of models that think: looks for marks in content. */
const SEARCHING =
  "{% for message in messages %}{% if '</think>' in message.content %}{{ message.content.split('</think>')[-1] }}" +
  "{% else %}{{ message.content }}{% endif %}{% if message.content.startswith('<tool>') %}tool{% endif %}|{% endfor %}";

/** Refuses chats that do not take turns. */
const STRICT =
  "{% for message in messages %}{% if (message.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('turns') }}{% endif %}" +
  "{{ messages[0].content }}{{ message.content }}{% endfor %}";

const context = { tools: null, bos_token: "<s>", add_generation_prompt: true };
const message = fc.record({
  role: fc.constantFrom("user", "assistant", "tool", "system"),
  content: fc.constantFrom("a", "b", "", " c ", "\n", "</think>", "<tool>", "\u{0}1\u{0}", "d\u2003", "{{ e }}"),
});
const rendered = (template: Template, items: object): string | undefined => {
  try {
    return template.render(items as Record<string, unknown>);
  } catch {
    return undefined;
  }
};

describe.each([
  ["Qwen2.5", qwenTemplate()],
  ["a template that strips", STRIPPING],
  ["a template that searches", SEARCHING],
  ["a template that refuses", STRICT],
])("a chat written by its shape, under %s", (_, source) => {
  test("is what the template writes", () => {
    const whole = new Template(source);
    const writer = ShapeWriter.for(source)!;
    let written = 0;
    fc.assert(
      fc.property(fc.array(message, { minLength: 1, maxLength: 6 }), fc.boolean(), (messages, asks) => {
        const settings = { ...context, add_generation_prompt: asks };
        const expected = rendered(whole, { ...settings, messages });
        let text: string | undefined;
        try {
          text = writer.write(messages, settings, String(asks));
        } catch {
          expect(expected).toBeUndefined();
          return;
        }
        if (text === undefined) return;
        written++;
        expect(text).toBe(expected);
      }),
      { numRuns: 1000 },
    );
    expect(written).toBeGreaterThan(0);
  });

  test("runs the template once for all chats of the same roles", () => {
    const writer = ShapeWriter.for(source)!;
    const render = vi.spyOn(Template.prototype, "render");
    for (let turn = 0; turn < 5; turn++) {
      const messages = ["user", "assistant", "user"].map((role) => ({ role, content: `turn ${turn} of ${role}` }));
      expect(writer.write(messages, context, "")).toContain(`turn ${turn} of user`);
    }
    expect(render).toHaveBeenCalledTimes(1);
    render.mockRestore();
  });
});

describe("a chat that has no shape", () => {
  test.each([
    ["more than role and content", { role: "user", content: "x", source: { role: "user", content: "x", name: "n" } }],
    ["nothing but space", { role: "user", content: " \n" }],
    ["a text that the template searches for", { role: "user", content: "a</think>b" }],
  ])("has a message with %s", (_, one) => {
    expect(ShapeWriter.for(SEARCHING)!.write([one], context, "")).toBeUndefined();
  });

  test("is written by a template that searches for what stands in for content", () => {
    const source = "{% for message in messages %}{% if '\\n' in message.content %}lines{% endif %}{% endfor %}";
    expect(ShapeWriter.for(source)!.write([{ role: "user", content: "x" }], context, "")).toBeUndefined();
  });
});
