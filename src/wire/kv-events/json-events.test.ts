import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { KvChange, KvEvent } from "../../core/kv-index/types.ts";
import { TIERS } from "../../core/replica.ts";
import { EventStreamReader, STREAM_HEARTBEAT, streamEvent } from "./event-stream.ts";
import {
  decodeKvEvent,
  decodeKvEvents,
  decodeLoad,
  decodeSnapshot,
  decodeStreamHead,
  decodeStreamedEvent,
  encodeKvEvent,
  encodeKvEvents,
  encodeLoad,
  encodeSnapshot,
  encodeStreamHead,
} from "./json-events.ts";

const pairs = (count: number): fc.Arbitrary<Uint32Array> =>
  fc.uint32Array({ minLength: 2 * count, maxLength: 2 * count });
const tier = fc.constantFrom(...TIERS);
const change: fc.Arbitrary<KvChange> = fc.oneof(
  fc.nat(5).chain((count) =>
    fc.record({
      kind: fc.constant("stored" as const),
      tier,
      parent: fc.option(pairs(1)),
      engine: pairs(count),
      local: fc.option(pairs(count)),
    }),
  ),
  fc.record({ kind: fc.constant("removed" as const), tier, engine: fc.nat(5).chain(pairs) }),
  fc.record({ kind: fc.constant("cleared" as const), tier }),
);
const event: fc.Arbitrary<KvEvent> = fc
  .record({ change, incarnation: fc.string(), eventId: fc.nat(), more: fc.option(fc.array(change)) })
  .map(({ change: first, incarnation, eventId, more }) => ({
    ...first,
    incarnation,
    eventId,
    ...(more !== null && { more }),
  }));

describe("events as JSON", () => {
  test("come back as they were", () => {
    fc.assert(
      fc.property(fc.array(event), (events) => {
        expect(events.map((one) => decodeKvEvent(encodeKvEvent(one)))).toEqual(events);
        expect(decodeKvEvents(encodeKvEvents(events))).toEqual(events);
      }),
    );
  });

  test("carry the time they were sent at, where it is known", () => {
    const cleared: KvEvent = { kind: "cleared", incarnation: "a", eventId: 0, tier: "device" };
    expect(decodeStreamedEvent(encodeKvEvent(cleared, 1_760_000_000_123))).toEqual({
      event: cleared,
      sentMs: 1_760_000_000_123,
    });
    expect(decodeStreamedEvent(encodeKvEvent(cleared))).toEqual({ event: cleared, sentMs: undefined });
  });

  test.each([
    "",
    "null",
    "[]",
    '{"incarnation":"a","eventId":0,"kind":"moved","tier":"device"}',
    '{"incarnation":"a","eventId":0,"kind":"cleared","tier":"attic"}',
    '{"incarnation":"a","eventId":-1,"kind":"cleared","tier":"device"}',
    '{"incarnation":"a","eventId":0,"kind":"removed","tier":"device","engine":"0123"}',
    '{"incarnation":"a","eventId":0,"kind":"stored","tier":"device","engine":"0000000000000001","parent":"","local":null}',
  ])("are not taken from %j", (text) => {
    expect(decodeKvEvent(text)).toBeUndefined();
  });
});

test("a snapshot, a load and a stream's head come back as they were", () => {
  const run = { tier: "host", sequence: Uint32Array.of(1, 2, 3, 4), engine: Uint32Array.of(5, 6, 7, 8) } as const;
  const snapshot = { incarnation: "a", lastEventId: -1, runs: [run, { ...run, engine: null }] };
  expect(decodeSnapshot(encodeSnapshot(snapshot))).toEqual(snapshot);
  expect(decodeSnapshot('{"incarnation":"a","lastEventId":0,"runs":[{}]}')).toBeUndefined();
  const load = { running: 3, waiting: 1, kvUsage: 0.5, batchSlots: 16 };
  expect(decodeLoad(encodeLoad(load))).toEqual(load);
  expect(decodeLoad('{"running":-1,"waiting":0,"kvUsage":0}')).toBeUndefined();
  const head = { incarnation: "a", lastEventId: -1, nextEventId: 0 };
  expect(decodeStreamHead(encodeStreamHead(head))).toEqual(head);
  expect(decodeStreamHead("{}")).toBeUndefined();
});

test("a stream of named events is read wherever it is cut", () => {
  const text = `${streamEvent("kv", '{"ä":1}')}${STREAM_HEARTBEAT}data: x\r\ndata: y\r\n\r\n${streamEvent("load", "{}")}`;
  const bytes = new TextEncoder().encode(text);
  for (let cut = 0; cut <= bytes.length; cut++) {
    const reader = new EventStreamReader();
    const events = [...reader.push(bytes.subarray(0, cut)), ...reader.push(bytes.subarray(cut))];
    expect(events).toEqual([
      { type: "kv", data: '{"ä":1}' },
      { type: "message", data: "x\ny" },
      { type: "load", data: "{}" },
    ]);
  }
});

test("an event in many pieces is put together, and one without an end is refused", () => {
  const reader = new EventStreamReader();
  const piece = new TextEncoder().encode("x".repeat(1000));
  reader.push(new TextEncoder().encode("event: kv\ndata: "));
  for (let i = 0; i < 1000; i++) expect(reader.push(piece)).toEqual([]);
  expect(reader.push(new TextEncoder().encode("\r\n\r"))).toEqual([]);
  expect(reader.push(new TextEncoder().encode("\n"))).toEqual([{ type: "kv", data: "x".repeat(1_000_000) }]);
  const endless = new Uint8Array(16 * 1024 * 1024).fill(0x78);
  expect(() => {
    for (let i = 0; i < 5; i++) reader.push(endless);
  }).toThrow("an event has more than 67108864 characters");
});
