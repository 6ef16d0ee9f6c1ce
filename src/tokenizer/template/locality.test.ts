import { Template } from "@huggingface/jinja";
import { describe, expect, test } from "vitest";
import { qwenTemplate } from "../../../test/support/model-files.ts";
import { type Locality, localityOf } from "./locality.ts";

const locality = (source: string): Locality | undefined => localityOf(new Template(source).parsed.body);
const loop = (body: string): string => `{% for message in messages %}${body}{% endfor %}`;

describe("whether a template writes each message by itself", () => {
  test.each([
    ["plain loops", loop("{{ message.role }}")],
    ["neighbours", loop("{{ messages[loop.index0 - 1].role }}{{ messages[loop.index0 + 1].role }}{{ loop.nextitem }}")],
    [
      "turns",
      loop("{% if (message.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('turns') }}{% endif %}"),
    ],
    ["variables set before they are read", loop("{% set role = message.role %}{{ role }}")],
    ["loops inside", loop("{% for call in message.calls %}{{ loop.index }}{{ loop.length }}{% endfor %}")],
    ["Qwen2.5", qwenTemplate()],
  ])("is so for %s", (_, source) => {
    expect(locality(source)).toMatchObject({ head: 2 });
  });

  test("counts the messages that a prologue may take off the list", () => {
    const cut = "{% if messages[0].role == 'system' %}{% set messages = messages[1:] %}{% endif %}";
    expect(locality(cut + cut + loop("{{ message }}"))).toMatchObject({ head: 4 });
  });

  test.each([
    ["no loop", "{{ messages[0].content }}"],
    ["another list", `{% set list = messages %}{% for message in list %}x{% endfor %}`],
    ["two loops", loop("x") + loop("y")],
    ["the number of messages", loop("{{ loop.length }}")],
    ["the number of messages, before", `{{ messages | length }}${loop("x")}`],
    ["the place of a message", loop("{{ loop.index0 }}")],
    ["the place from the end", loop("{{ loop.revindex }}")],
    ["messages farther away", loop("{{ messages[loop.index0 - 2].role }}")],
    ["the last message, inside", loop("{{ messages[-1].role }}")],
    ["the last message, before", `{% set last = messages[-1] %}${loop("{{ last }}")}`],
    ["a namespace", `{% set ns = namespace(n=0) %}${loop("{% set ns.n = 1 %}{{ ns.n }}")}`],
    ["a variable from the message before", loop("{{ role }}{% set role = message.role %}")],
    ["a variable set on one side only", loop("{% if message.x %}{% set role = 1 %}{% endif %}{{ role }}")],
    [
      "a macro that reads such a variable",
      `{% macro m() %}{{ role }}{% endmacro %}${loop("{{ m() }}{% set role = 1 %}")}`,
    ],
    ["a list that grows", `{% set list = [] %}${loop("{{ list.append(message) }}{{ list }}")}`],
    ["an early end", loop("{% if message.x %}{% break %}{% endif %}")],
    ["the time", loop("{{ strftime_now('%S') }}")],
    ["the place by another name", loop("{{ loop['index0'] }}")],
    ["messages in a loop inside", loop("{% for x in [1] %}{{ messages[loop.index0 + 1] }}{% endfor %}")],
    ["all messages in a loop inside", loop("{% for other in messages %}{{ other }}{% endfor %}")],
    ["a choice of messages", "{% for message in messages if message.role %}x{% endfor %}"],
  ])("is not so with %s", (_, source) => {
    expect(locality(source)).toBeUndefined();
  });
});
