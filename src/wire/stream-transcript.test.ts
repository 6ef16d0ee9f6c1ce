import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { SSE_DONE, sseEvent, sseEvents } from "./sse.ts";
import { StreamSplice, StreamTranscript } from "./stream-transcript.ts";

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const decode = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

const chunk = (delta: object, more: object = {}): string =>
  sseEvent(
    JSON.stringify({
      id: "first",
      created: 1,
      model: "m",
      choices: [{ index: 0, delta, finish_reason: null, ...more }],
    }),
  );
const piece = (text: string): string => chunk({ content: text });

function transcriptOf(...events: readonly string[]): StreamTranscript {
  const transcript = new StreamTranscript();
  for (const event of events) expect(decode(transcript.relay(encode(event)))).toBe(event);
  return transcript;
}

describe("a transcript of a stream", () => {
  test("has what chats and texts said, and what their events have in common", () => {
    const chat = transcriptOf(chunk({ role: "assistant", content: "" }), piece("Hé") + piece("llo"), ": ping\n\n");
    expect(chat.said).toEqual({ text: "Héllo", tokens: 2 });
    expect(chat.head).toEqual({ id: "first", created: 1, model: "m" });
    const text = transcriptOf('data: {"id":"t","choices":[{"text":" a"}]}\r\n\r\n');
    expect(text.said).toEqual({ text: " a", tokens: 1 });
  });

  test("believes an engine that counts its tokens aloud", () => {
    const usage = { prompt_tokens: 5, completion_tokens: 7 };
    const event = sseEvent(JSON.stringify({ id: "x", choices: [{ delta: { content: "several words" } }], usage }));
    expect(transcriptOf(event).said.tokens).toBe(7);
  });

  test("keeps an error back, and all that follows it", () => {
    const transcript = new StreamTranscript();
    const error = sseEvent('{"error":{"message":"engine is dead"}}');
    expect(decode(transcript.relay(encode(piece("a") + error + SSE_DONE)))).toBe(piece("a"));
    expect(transcript.relay(encode(piece("b")))).toHaveLength(0);
    expect(decode(transcript.error ?? new Uint8Array(0))).toBe(error);
    expect(transcript.said.text).toBe("a");
  });

  test.each([
    ["tool-calls", { tool_calls: [{ index: 0 }] }],
    ["tool-calls", { function_call: { name: "f" } }],
    ["reasoning", { reasoning_content: "hm" }],
    ["reasoning", { reasoning: "hm" }],
  ])("finds what cannot be continued: %s in %j", (obstacle, delta) => {
    expect(transcriptOf(piece("a")).obstacle).toBeUndefined();
    expect(transcriptOf(piece("a"), chunk(delta), piece("b")).obstacle).toBe(obstacle);
  });

  test("knows whether the answer is complete", () => {
    expect(transcriptOf(piece("a")).isFinished).toBe(false);
    expect(transcriptOf(piece("a"), chunk({}, { finish_reason: "stop" })).isFinished).toBe(true);
  });
});

test("whatever an engine sends is read without complaint", () => {
  const value = fc.oneof(
    fc.jsonValue({ maxDepth: 1 }),
    fc.constantFrom([], {}, null, "", [{}], [{ delta: {} }], { role: 1 }),
  );
  const event = fc.oneof(
    fc.string({ maxLength: 20 }).map((text) => `data: ${text}\n\n`),
    fc.string({ maxLength: 20 }),
    fc
      .record({ id: value, choices: value, usage: value, error: value }, { requiredKeys: [] })
      .map((fields) => sseEvent(JSON.stringify(fields))),
    fc
      .record({ role: value, content: value, tool_calls: value, reasoning: value }, { requiredKeys: [] })
      .map((delta) => chunk(delta)),
  );
  fc.assert(
    fc.property(fc.array(event, { maxLength: 4 }), fc.array(event, { maxLength: 4 }), (before, after) => {
      const transcript = new StreamTranscript();
      for (const each of before) transcript.relay(encode(each));
      const splice = new StreamSplice(transcript);
      for (const each of after) expect(splice.relay(encode(each))).toBeInstanceOf(Uint8Array);
      expect(typeof transcript.said.text).toBe("string");
    }),
  );
});

describe("the rest of a stream from another engine", () => {
  const other = (choices: readonly object[], more: object = {}): string =>
    sseEvent(JSON.stringify({ id: "second", created: 2, model: "alias", choices, ...more }));

  /** What a client is given of the rest, event by event. */
  function spliced(rest: string, transcript = transcriptOf(piece("a"), piece("b"))): unknown[] {
    const passed = new StreamSplice(transcript).relay(encode(rest));
    return Array.from(sseEvents(passed), ({ data }) =>
      data === "[DONE]" ? data : (JSON.parse(data ?? "") as unknown),
    );
  }

  test("looks like the first one's, and does not open the answer again", () => {
    const opening = other([{ index: 0, delta: { role: "assistant", content: "" }, finish_reason: null }]);
    const events = spliced(opening + other([{ index: 0, delta: { role: "assistant", content: "c" } }]) + SSE_DONE);
    expect(events).toEqual([
      { id: "first", created: 1, model: "m", choices: [{ index: 0, delta: { content: "c" } }] },
      "[DONE]",
    ]);
  });

  test("keeps an event that ends an answer, though nothing is in it", () => {
    const end = { index: 0, delta: { role: "assistant", content: "" }, finish_reason: "stop" };
    expect(spliced(other([end]))).toMatchObject([{ choices: [{ finish_reason: "stop" }] }]);
  });

  test("counts what was said as answer and not as prompt", () => {
    const usage = {
      prompt_tokens: 12,
      completion_tokens: 5,
      total_tokens: 17,
      prompt_tokens_details: { cached_tokens: 11, audio_tokens: 0 },
    };
    expect(spliced(other([], { usage }))).toMatchObject([
      {
        usage: {
          prompt_tokens: 10,
          completion_tokens: 7,
          total_tokens: 17,
          prompt_tokens_details: { cached_tokens: 10, audio_tokens: 0 },
        },
      },
    ]);
  });

  test("passes on what it does not understand, errors among it", () => {
    const odd = `: ping\n\ndata: {not json\n\n${sseEvent('{"error":{"message":"m"}}')}`;
    expect(decode(new StreamSplice(transcriptOf(piece("a"))).relay(encode(odd)))).toBe(odd);
  });

  test("says with the beginning exactly what was generated, wherever the stream is cut", () => {
    const pieces = fc.array(fc.string({ unit: "grapheme", minLength: 1 }), { minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(pieces, fc.nat(20), (texts, cut) => {
        const before = texts.slice(0, cut);
        const after = texts.slice(cut);
        const transcript = transcriptOf(...before.map(piece));
        const rest = after.map((text) => other([{ index: 0, delta: { content: text } }])).join("");
        const continued = transcriptOf(decode(new StreamSplice(transcript).relay(encode(rest))));
        expect(transcript.said.text + continued.said.text).toBe(texts.join(""));
        expect(transcript.said.tokens + continued.said.tokens).toBe(texts.length);
      }),
    );
  });
});
