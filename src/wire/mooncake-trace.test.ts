import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type MooncakeRow, parseMooncakeLine, parseMooncakeTrace, writeMooncakeRow } from "./mooncake-trace.ts";

const ROW = { timestamp: 27000, input_length: 1025, output_length: 52, hash_ids: [46, 47, 48] };

function problem(change: Record<string, unknown>): string {
  const parsed = parseMooncakeLine(JSON.stringify({ ...ROW, ...change }));
  return parsed.ok ? "no problem" : parsed.problem;
}

const tokens = fc.integer({ min: 1, max: 3000 });
const timesMs = fc.integer({ min: 0, max: 10_000_000 }).map((microseconds) => microseconds / 1000);

const rows: fc.Arbitrary<MooncakeRow> = fc
  .tuple(tokens, tokens, timesMs, fc.nat(1000), fc.boolean())
  .map(([inputTokens, outputTokens, ms, firstId, waits]) => ({
    ...(waits ? { delayMs: ms, sessionId: "a" } : { timestampMs: ms }),
    inputTokens,
    outputTokens,
    hashIds: Array.from({ length: Math.ceil(inputTokens / 512) }, (_, at) => firstId + at),
  }));

describe("a line of a trace", () => {
  test("is read as published", () => {
    const line = '{"timestamp": 27000, "input_length": 1025, "output_length": 52, "hash_ids": [46, 47, 48]}';
    const parsed = parseMooncakeLine(line);
    expect(parsed).toEqual({
      ok: true,
      row: { timestampMs: 27000, inputTokens: 1025, outputTokens: 52, hashIds: [46, 47, 48] },
    });
    expect(parsed.ok && writeMooncakeRow(parsed.row)).toBe(line);
  });

  test("may carry a session, a delay, and text instead of a length", () => {
    const written = { session_id: 7, delay: 250, output_length: 9, messages: [{ role: "user", content: "hi" }] };
    expect(parseMooncakeLine(JSON.stringify({ ...written, tools: [], extra: 1 }))).toEqual({
      ok: true,
      row: { sessionId: "7", delayMs: 250, outputTokens: 9, hashIds: [], messages: written.messages },
    });
    const text = parseMooncakeLine('{"timestamp":1,"text_input":"hello","output_length":1}');
    expect(text).toMatchObject({ ok: true, row: { textInput: "hello" } });
  });

  test("comes back from writing as it was", () => {
    fc.assert(
      fc.property(rows, (row) => {
        expect(parseMooncakeLine(writeMooncakeRow(row))).toEqual({ ok: true, row });
      }),
    );
  });

  test.each([
    [{ timestamp: undefined }, "timestamp is missing"],
    [{ timestamp: "soon" }, 'timestamp must be a number of ms, 0 or more, got "soon"'],
    [{ timestamp: -1 }, "timestamp must be a number of ms, 0 or more, got -1"],
    [{ timestamp: 1e300 }, "timestamp must be a number of ms, 0 or more, got 1e+300"],
    [{ input_length: undefined }, "input_length is missing"],
    [{ input_length: 0 }, "input_length must be a whole number, 1 or more, got 0"],
    [{ input_length: 10.5 }, "input_length must be a whole number, 1 or more, got 10.5"],
    [{ output_length: undefined }, "output_length is missing"],
    [{ output_length: null }, "output_length must be a whole number, 1 or more, got null"],
    [{ hash_ids: "46" }, 'hash_ids must be a list of whole numbers, got "46"'],
    [{ hash_ids: [46, -1, 48] }, "hash_ids[1] must be a whole number, 0 or more, got -1"],
    [{ hash_ids: [46, 47] }, "hash_ids must have 3 for an input_length of 1025 in blocks of 512, got 2"],
    [{ input_length: undefined, text_input: "a" }, "hash_ids needs an input_length"],
    [{ session_id: {} }, "session_id must be a text or a whole number, got {}"],
    [{ delay: 5 }, "delay needs a session_id"],
    [{ session_id: "a", delay: [] }, "delay must be a number of ms, 0 or more, got []"],
    [{ text_input: 5 }, "text_input must be a text, got 5"],
    [{ messages: "x".repeat(99) }, `messages must be a list, got "${"x".repeat(38)}…`],
  ])("with %j is refused", (change, expected) => {
    expect(problem(change)).toBe(expected);
  });

  test.each([
    ["[1]", "must be an object, got [1]"],
    ["null", "must be an object, got null"],
    ['{"timestamp":', /^is not JSON: /],
  ])("%s is refused", (line, expected) => {
    const parsed = parseMooncakeLine(line);
    expect(parsed).toEqual({
      ok: false,
      problem: typeof expected === "string" ? expected : expect.stringMatching(expected),
    });
  });
});

describe("a trace", () => {
  test("is read without its blank lines, also from Windows", () => {
    const line = JSON.stringify(ROW);
    expect(parseMooncakeTrace(`${line}\r\n\r\n${line}\r\n`, "t.jsonl")).toHaveLength(2);
  });

  test("names file, line and field of the first problem", () => {
    const text = [ROW, ROW, { ...ROW, input_length: "many" }].map((row) => JSON.stringify(row)).join("\n");
    expect(() => parseMooncakeTrace(text, "t.jsonl")).toThrow(
      't.jsonl line 3: input_length must be a whole number, 1 or more, got "many"',
    );
  });

  test("without rows is refused", () => {
    expect(() => parseMooncakeTrace("\n", "t.jsonl")).toThrow("t.jsonl has no rows");
  });

  test("may have blocks of another size", () => {
    expect(
      parseMooncakeTrace('{"timestamp":0,"input_length":40,"output_length":1,"hash_ids":[1,2,3]}', "t", 16),
    ).toHaveLength(1);
  });
});
