import { Template } from "@huggingface/jinja";
import { describe, expect, test } from "vitest";
import { qwenTemplate } from "../../../test/support/model-files.ts";
import { searchedTexts } from "./copied-content.ts";

const searched = (source: string): readonly string[] | undefined => searchedTexts(new Template(source).parsed.body);
const loop = (body: string): string => `{% for message in messages %}${body}{% endfor %}`;

describe("whether a template only copies content", () => {
  test.each([
    ["plain loops", loop("{{ '<' + message.role + '>' + message['content'] + '\\n' }}")],
    ["stripped content", loop("{{ message.content | trim }}{{ message.content.strip() }}")],
    ["variables", loop("{% set text = message.content | trim %}{% set all = text ~ '!' %}{{ all }}")],
    ["empty content", loop("{% if message.content and not message.tool_calls %}{{ message.content }}{% endif %}")],
    ["a message by its place", "{{ messages[0]['content'] }}{{ messages[-1].content }}{{ (messages | last).content }}"],
    ["messages under another name", "{% set rest = messages[1:] %}{% for one in rest %}{{ one.content }}{% endfor %}"],
    ["neighbours", loop("{{ loop.previtem.content if loop.previtem else '' }}")],
    ["what kind of thing content is", loop("{% if message.content is string %}{{ message.content }}{% endif %}")],
    ["what a message has", loop("{% if 'tool_calls' in message %}x{% endif %}{{ message.get('content') }}")],
    ["roles in any way", loop("{{ message.role | upper }}{{ message.role[0] }}{% set ns.last = message.role %}")],
    ["macros that see none of it", "{% macro m(x) %}{{ x }}{% endmacro %}" + loop("{{ m(message.role) }}")],
    ["Qwen2.5", qwenTemplate()],
  ])("is so for %s", (_, source) => {
    expect(searched(source)).toEqual([]);
  });

  test("collects the texts that are searched for, and skips what is done with those that have them", () => {
    const thinking =
      "{% if '</think>' in message.content %}{{ message.content.split('</think>')[1] }}{% else %}{{ message.content }}{% endif %}" +
      "{% if not message.content.startswith('<tool>') %}x{% endif %}";
    expect(searched(loop(thinking))).toEqual(["</think>", "<tool>"]);
  });

  test.each([
    ["its length", loop("{{ message.content | length }}")],
    ["a part of it", loop("{{ message.content[:3] }}")],
    ["a change of it", loop("{{ message.content | upper }}")],
    ["a comparison", loop("{% if message.content == 'x' %}y{% endif %}")],
    ["one message in another's", loop("{% if message.content in messages[0].content %}y{% endif %}")],
    ["a change under another name", loop("{% set a = message.content %}{% set b = a %}{{ b | title }}")],
    ["a name that is set later", loop("{{ late | title }}{% set late = message.content %}")],
    ["the whole message", loop("{{ message | tojson }}")],
    ["the whole list", "{{ messages | tojson }}"],
    ["fields by name", loop("{% for key in ['content'] %}{{ message[key] }}{% endfor %}")],
    ["all fields", loop("{% for key, value in message.items() %}{{ value }}{% endfor %}")],
    ["a namespace", loop("{% set ns.text = message.content %}{{ ns.text }}")],
    ["a list", loop("{% set list = [message.content] %}{{ list[0] | title }}")],
    ["a macro's parameter", "{% macro m(x) %}{{ x | title }}{% endmacro %}" + loop("{{ m(message.content) }}")],
    ["a macro's result", "{% macro m() %}{{ messages[0].content }}{% endmacro %}{{ m() | title }}"],
    ["text that is captured", loop("{% set text %}{{ message.content }}{% endset %}{{ text | title }}")],
    ["its characters", loop("{% for letter in message.content %}{{ letter }}.{% endfor %}")],
    ["a search for nothing", loop("{% if '' in message.content %}y{% endif %}")],
    ["the time", "{{ strftime_now('%S') }}"],
  ])("is not so with %s", (_, source) => {
    expect(searched(source)).toBeUndefined();
  });
});
