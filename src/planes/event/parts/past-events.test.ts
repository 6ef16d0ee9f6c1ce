import { expect, test } from "vitest";
import type { KvEvent } from "../../../core/kv-index/types.ts";
import { PastEvents } from "./past-events.ts";

const event = (eventId: number, incarnation = "a"): KvEvent => ({
  kind: "cleared",
  tier: "device",
  incarnation,
  eventId,
});

test("keeps as many events as it should and gives ranges of them", () => {
  const past = new PastEvents(3);
  expect(past.range(0, 0)).toBeUndefined();
  for (let id = 0; id < 100; id++) {
    past.add(event(id));
    const first = Math.max(0, id - 2);
    expect(past.firstEventId).toBe(first);
    expect(past.range(first, id)?.map(({ eventId }) => eventId)).toEqual(
      [first, first + 1, first + 2].slice(0, id + 1),
    );
    expect(past.range(first - 1, id)).toBeUndefined();
    expect(past.range(first, id + 1)).toBeUndefined();
  }
});

test("forgets the events of an earlier life", () => {
  const past = new PastEvents(3);
  past.add(event(0));
  past.add(event(0, "b"));
  expect(past.range(0, 0)).toEqual([event(0, "b")]);
});
