import { describe, expect, test } from "vitest";
import type { EventListener, EventPlane } from "../planes/event/types.ts";
import { EventTimes } from "./event-times.ts";

/** A plane that the test speaks through. */
function playedPlane(): { plane: EventPlane; listener: () => EventListener; asked: string[] } {
  const asked: string[] = [];
  let heard: EventListener | undefined;
  const plane: EventPlane = {
    capabilities: { replayDepth: 8, snapshot: true },
    counts: { events: 0, undecodable: 0, ignored: 0, reconnects: 0 },
    subscribe: (replica, listener, address) => {
      heard = listener;
      asked.push(`subscribe ${replica} ${address?.url}`);
      return {
        replay: (from, to) => asked.push(`replay ${from} ${to}`),
        resync: () => asked.push("resync"),
        catchUp: () => asked.push("catch up"),
        close: () => Promise.resolve(void asked.push("close")),
      };
    },
    close: () => Promise.resolve(),
  };
  return { plane, listener: () => heard as EventListener, asked };
}

describe("the times of events", () => {
  test("are noted by replica on their way, and how old messages were is passed on", async () => {
    const lags: number[] = [];
    let nowNs = 5;
    const times = new EventTimes({ nowNs: () => nowNs }, (ageMs) => lags.push(ageMs));
    const { plane, listener, asked } = playedPlane();
    const events: number[] = [];
    const subscription = times.watched(plane)?.subscribe(
      "a",
      {
        event: ({ eventId }) => events.push(eventId),
        snapshot: () => {},
        replayUnavailable: () => {},
        load: () => {},
        caughtUp: () => {},
      },
      { url: "tcp://a:1" },
    );
    expect(times.lastNs("a")).toBeUndefined();
    listener().event({ kind: "cleared", incarnation: "1", eventId: 7, tier: "device" });
    listener().lag?.(12);
    expect([events, lags, times.lastNs("a")]).toEqual([[7], [12], 5]);
    nowNs = 9;
    subscription?.replay(1, 2);
    subscription?.resync();
    subscription?.catchUp();
    await subscription?.close();
    expect(asked).toEqual(["subscribe a tcp://a:1", "replay 1 2", "resync", "catch up", "close"]);
    expect(times.lastNs("a")).toBeUndefined();
  });
});
