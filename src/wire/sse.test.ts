import { describe, expect, onTestFinished, test, vi } from "vitest";
import { encodeFinish, encodeOpening, encodePiece, encodeUsageEvent, type ReplyHead } from "./openai-reply.ts";
import { SSE_DONE, sseEvent, SseScanner, type SseScannerOptions } from "./sse.ts";

const HEAD: ReplyHead = { kind: "chat", id: "chatcmpl-1", model: "m", createdSeconds: 1 };

function scan(text: string, cut: number = text.length): SseScanner {
  const scanner = new SseScanner();
  const bytes = new TextEncoder().encode(text);
  for (let at = 0; at < bytes.length; at += cut) scanner.push(bytes.subarray(at, at + cut));
  return scanner;
}

function relayed(text: string, cut: number, options: SseScannerOptions): string {
  const scanner = new SseScanner(options);
  const bytes = new TextEncoder().encode(text);
  const passed: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += cut) passed.push(scanner.relay(bytes.subarray(at, at + cut)));
  return Buffer.concat(passed).toString();
}

const USAGE_EVENT: string = sseEvent(encodeUsageEvent(HEAD, { promptTokens: 9, outputTokens: 2, cachedTokens: 4 }));

const STREAM = [
  sseEvent(encodeOpening(HEAD) ?? ""),
  ": a comment that keeps the connection open\n\n",
  sseEvent(encodePiece(HEAD, 'a "content":"quoted" word')),
  sseEvent(encodePiece(HEAD, " ünïcode 🙂")),
  sseEvent(encodeFinish(HEAD, "stop")),
  USAGE_EVENT,
  SSE_DONE,
].join("");

describe("the scanner of server-sent events", () => {
  test.each([1, 2, 3, 7, 64, 10_000])("reads a stream in pieces of %i bytes like a whole one", (cut) => {
    const scanner = scan(STREAM, cut);
    expect(scanner.contentEvents).toBe(2);
    expect(scanner.isDone).toBe(true);
    expect(scanner.hasError).toBe(false);
    expect(scanner.rest).toHaveLength(0);
    expect(scanner.usage).toEqual({ promptTokens: 9, outputTokens: 2, cachedTokens: 4 });
  });

  test("returns how many events with content a chunk completed", () => {
    const scanner = new SseScanner();
    const [first, second] = [encodePiece(HEAD, "a"), encodePiece(HEAD, "b")].map((json) => sseEvent(json));
    const bytes = new TextEncoder().encode(first + second);
    expect(scanner.push(bytes.subarray(0, 20))).toBe(0);
    expect(scanner.rest).toHaveLength(20);
    expect(scanner.push(bytes.subarray(20, bytes.length - 5))).toBe(1);
    expect(scanner.push(bytes.subarray(bytes.length - 5))).toBe(1);
  });

  test.each([1, 2, 3, 7, 64, 10_000])("passes on whole events alone, in pieces of %i bytes", (cut) => {
    expect(relayed(STREAM, cut, {})).toBe(STREAM);
    const cutShort = STREAM.slice(0, STREAM.length - 3);
    expect(relayed(cutShort, cut, {})).toBe(STREAM.slice(0, STREAM.length - SSE_DONE.length));
  });

  test.each([1, 2, 3, 7, 64, 10_000])("leaves the usage out that nobody asked for, in pieces of %i bytes", (cut) => {
    expect(relayed(STREAM, cut, { dropsUsage: true })).toBe(STREAM.replace(USAGE_EVENT, ""));
  });

  test.each([
    ["\n", 1],
    ["\r\n", 1],
    ["\n", 1000],
    ["\r\n", 1000],
    ["\r\n", 1001],
  ])("passes long events on whole with lines that end in %j, in pieces of %i bytes", (lineEnd, cut) => {
    const long = (letter: string): string => sseEvent(`{"choices":[{"text":"${letter.repeat(40_000)}"}]}`);
    const stream = [long("x"), sseEvent('{"choices":[{"text":"y"}]}'), long("z"), SSE_DONE].join("");
    const written = stream.replaceAll("\n", lineEnd);
    expect(relayed(written, cut, {})).toBe(written);
    expect(scan(written, cut)).toMatchObject({ contentEvents: 3, isDone: true });
  });

  test("does not copy the beginning of a long event with every piece that follows", () => {
    const copy = vi.spyOn(Uint8Array.prototype, "set");
    onTestFinished(() => copy.mockRestore());
    const event = new TextEncoder().encode(sseEvent(`{"choices":[{"text":"${"x".repeat(500_000)}"}]}`));
    const scanner = new SseScanner();
    for (let at = 0; at < event.length; at += 1000) scanner.relay(event.subarray(at, at + 1000));
    const copied = copy.mock.calls.reduce((sum, [bytes]) => sum + bytes.length, 0);
    expect(scanner.contentEvents).toBe(1);
    expect(copied).toBeLessThan(10 * event.length);
  });

  test("keeps usage that comes with content", () => {
    const event = sseEvent('{"choices":[{"text":"x"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}');
    expect(relayed(event, 10_000, { dropsUsage: true })).toBe(event);
  });

  test.each([
    ['{"choices":[{"delta":{"role":"assistant","content":""}}]}', 0],
    ['{"choices":[{"delta":{"content": "x"}}]}', 1],
    ['{"choices":[{"delta":{"content":null,"tool_calls":[]}}]}', 0],
    ['{"choices":[{"delta":{"tool_calls":[{"index":0}]}}]}', 1],
    ['{"choices":[{"delta":{"reasoning_content":"hm"}}]}', 1],
    ['{"choices":[{"delta":{"reasoning":"hm"}}]}', 1],
    ['{"choices":[{"text":"x","index":0}]}', 1],
    ['{"choices":[{"text":"","index":0}]}', 0],
    ['{"choices":[{"delta":{"type":"text"}}]}', 0],
    ['{"choices":[],"usage":null}', 0],
  ])("counts content in %s as %i", (json, count) => {
    expect(scan(sseEvent(json)).contentEvents).toBe(count);
  });

  test("takes lines that end in a carriage return, and data without a space", () => {
    const scanner = scan('event: message\r\ndata:{"choices":[{"text":"x"}]}\r\n\r\ndata: [DONE]\r\n\r\n', 5);
    expect(scanner.contentEvents).toBe(1);
    expect(scanner.isDone).toBe(true);
  });

  test("notices an error that the server reports inside the stream", () => {
    expect(scan(sseEvent('{"error":{"message":"out of memory"}}')).hasError).toBe(true);
    expect(scan(sseEvent('{"error":null,"choices":[]}')).hasError).toBe(false);
  });

  test("leaves a usage that cannot be read alone", () => {
    expect(scan(sseEvent('{"usage":{"prompt_tokens":-1}}')).usage).toBeUndefined();
    expect(scan(sseEvent('{"usage":{broken')).usage).toBeUndefined();
  });

  test("reads usage without cached tokens as not knowing them", () => {
    const scanner = scan(sseEvent('{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}}'));
    expect(scanner.usage).toEqual({ promptTokens: 3, outputTokens: 1, cachedTokens: undefined });
  });
});
