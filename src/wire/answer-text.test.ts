import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { tellContent } from "./answer-content.ts";
import { AnswerText } from "./answer-text.ts";
import { SseScanner } from "./sse.ts";

function event(content: string): string {
  return `data: ${JSON.stringify({ id: "x", choices: [{ index: 0, delta: { content }, finish_reason: null }] })}\n\n`;
}

function gathered(bytes: Buffer, cuts: readonly number[]): string {
  const text = new AnswerText("chat");
  const scanner = new SseScanner({ listener: text });
  let from = 0;
  for (const cut of [...cuts, bytes.length].map((at) => Math.min(at, bytes.length)).sort((a, b) => a - b)) {
    scanner.relay(bytes.subarray(from, cut));
    from = cut;
  }
  return JSON.parse(`"${text.toString()}"`) as string;
}

describe("the text of an answer", () => {
  test("is whole whatever it says and wherever the stream is cut", () => {
    const pieces = fc.array(
      fc.oneof(
        fc.string({ unit: "binary" }),
        fc.constantFrom('"content":"no"', "\\", '\\"', "é", "😀", "\n", '{"text":"x"}'),
      ),
      { maxLength: 20 },
    );
    const cuts = fc.array(fc.nat(4000), { maxLength: 10 });
    fc.assert(
      fc.property(pieces, cuts, (said, at) => {
        const bytes = Buffer.from(`${said.map(event).join("")}data: [DONE]\n\n`);
        expect(gathered(bytes, at)).toBe(said.join(""));
      }),
    );
  });

  test("is the same in one piece, however long", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 10_000 }), (said) => {
        const text = new AnswerText("completion");
        tellContent(Buffer.from(JSON.stringify({ id: "x", choices: [{ index: 0, text: said }], usage: {} })), text);
        expect(text.read()).toBe(said);
        expect(text.isMoreThanText).toBe(false);
      }),
    );
  });

  test("leaves out reasoning, roles and content that is null", () => {
    const delta = (fields: object): string => `data: ${JSON.stringify({ choices: [{ delta: fields }] })}\n\n`;
    const stream = [
      delta({ role: "assistant", content: "" }),
      delta({ reasoning_content: "hm" }),
      delta({ content: null }),
      delta({ content: "Yes." }),
    ];
    expect(gathered(Buffer.from(stream.join("")), [])).toBe("Yes.");
  });

  test("is read with spaces after the colon too", () => {
    expect(gathered(Buffer.from('data: {"choices": [{"delta": {"content": "a b"}}]}\n\n'), [])).toBe("a b");
  });
});
