import fc from "fast-check";
import { beforeEach, describe, expect, it } from "vitest";
import { EventFeed } from "./event-feed.ts";
import type { FeedCapabilities, KvEvent, ReplicaSnapshot } from "./types.ts";

const SECOND = 1e9;

function event(eventId: number, incarnation: string = "a", kind: "removed" | "cleared" = "removed"): KvEvent {
  const body = kind === "cleared" ? { kind } : { kind, engine: Uint32Array.of(eventId, 0) };
  return { ...body, incarnation, eventId, tier: "device" };
}

describe("EventFeed", () => {
  let seen: string[];

  function feed(capabilities: Partial<FeedCapabilities> = {}): EventFeed {
    return new EventFeed(
      { replayDepth: 0, snapshot: false, ...capabilities },
      {
        apply: ({ incarnation, eventId }) => seen.push(`${incarnation}${eventId}`),
        clear: () => seen.push("clear"),
        restore: ({ lastEventId }) => seen.push(`restore ${lastEventId}`),
      },
    );
  }

  function snapshot(lastEventId: number, incarnation: string = "a"): ReplicaSnapshot {
    return { incarnation, lastEventId, runs: [] };
  }

  beforeEach(() => {
    seen = [];
  });

  it("applies events in order and is live from the first on", () => {
    const events = feed();
    expect(events.state).toBe("empty");
    for (const id of [0, 1, 2]) expect(events.accept(event(id), 0)).toBeUndefined();
    expect(seen).toEqual(["a0", "a1", "a2"]);
    expect(events.state).toBe("live");
  });

  it("ignores what it has seen", () => {
    const events = feed();
    for (const id of [0, 1, 1, 0]) events.accept(event(id), 0);
    expect(seen).toEqual(["a0", "a1"]);
    expect(events.counts.duplicates).toBe(2);
  });

  it("asks for a lost range, serves stale meanwhile, and catches up in order", () => {
    const events = feed({ replayDepth: 100 });
    events.accept(event(0), 0);
    expect(events.accept(event(3), 0)).toEqual({ kind: "replay", fromEventId: 1, toEventId: 2 });
    expect(events.state).toBe("stale");
    expect(events.accept(event(4), 0)).toBeUndefined();
    expect(seen).toEqual(["a0"]);
    expect(events.accept(event(1), 0)).toBeUndefined();
    expect(events.state).toBe("stale");
    events.accept(event(2), 0);
    expect(events.counts.gaps).toBe(1);
    expect(seen).toEqual(["a0", "a1", "a2", "a3", "a4"]);
    expect(events.state).toBe("live");
  });

  it("asks again for a second range behind the first", () => {
    const events = feed({ replayDepth: 100 });
    for (const id of [0, 2, 4]) events.accept(event(id), 0);
    expect(events.accept(event(1), 0)).toEqual({ kind: "replay", fromEventId: 3, toEventId: 3 });
    events.accept(event(3), 0);
    expect(seen).toEqual(["a0", "a1", "a2", "a3", "a4"]);
    expect(events.state).toBe("live");
  });

  it("asks for the whole state when the range is longer than the source keeps", () => {
    const events = feed({ replayDepth: 2, snapshot: true });
    events.accept(event(0), 0);
    expect(events.accept(event(9), 0)).toEqual({ kind: "resync" });
    expect(events.state).toBe("resyncing");
    events.accept(event(10), 0);
    events.restore(snapshot(9), 0);
    expect(seen).toEqual(["a0", "restore 9", "a10"]);
    expect(events.state).toBe("live");
  });

  it("asks for the whole state when the source says that the range is gone", () => {
    const events = feed({ replayDepth: 100, snapshot: true });
    events.accept(event(0), 0);
    events.accept(event(2), 0);
    expect(events.replayUnavailable(0)).toEqual({ kind: "resync" });
  });

  it("asks for the whole state when it joins in mid-stream", () => {
    const events = feed({ replayDepth: 100, snapshot: true });
    expect(events.accept(event(7), 0)).toEqual({ kind: "resync" });
  });

  it("goes on as partial when nothing can be had again, and says so", () => {
    const events = feed();
    events.accept(event(0), 0);
    expect(events.accept(event(3), 0)).toBeUndefined();
    expect(events.state).toBe("partial");
    events.accept(event(4), 0);
    expect(seen).toEqual(["a0", "a3", "a4"]);
    expect(events.state).toBe("partial");
  });

  it("is live again once the engine has cleared its cache", () => {
    const events = feed();
    events.accept(event(5), 0);
    expect(events.state).toBe("partial");
    events.accept(event(6, "a", "cleared"), 0);
    expect(events.state).toBe("live");
  });

  it("stays partial although a later gap was filled", () => {
    const events = feed({ replayDepth: 2 });
    for (const id of [0, 9, 11]) events.accept(event(id), 0);
    events.accept(event(10), 0);
    expect(seen).toEqual(["a0", "a9", "a10", "a11"]);
    expect(events.state).toBe("partial");
  });

  it("stays partial when only one of two tiers was cleared", () => {
    const events = feed();
    events.accept(event(0), 0);
    events.accept({ ...event(4), tier: "host" }, 0);
    events.accept({ ...event(5, "a", "cleared"), tier: "host" }, 0);
    expect(events.state).toBe("partial");
  });

  it("asks three times for a range that does not come, then gives up on it", () => {
    const events = feed({ replayDepth: 100 });
    events.accept(event(0), 0);
    events.accept(event(2), 0);
    expect(events.tick(1 * SECOND)).toBeUndefined();
    for (const seconds of [2, 4]) {
      expect(events.tick(seconds * SECOND)).toEqual({ kind: "replay", fromEventId: 1, toEventId: 1 });
      expect(events.state).toBe("stale");
    }
    expect(events.tick(6 * SECOND)).toBeUndefined();
    expect(events.state).toBe("partial");
    expect(seen).toEqual(["a0", "a2"]);
  });

  it("asks again and again for a state that does not come", () => {
    const events = feed({ snapshot: true });
    events.accept(event(4), 0);
    const asked = [1, 2, 3, 4].map((seconds) => events.tick(seconds * SECOND)?.kind);
    expect(asked).toEqual([undefined, "resync", undefined, "resync"]);
  });

  it("resyncs rather than hold back more than a thousand events", () => {
    const events = feed({ replayDepth: 100_000, snapshot: true });
    events.accept(event(0), 0);
    const asked = Array.from({ length: 1030 }, (_, i) => events.accept(event(i + 2), 0)?.kind);
    expect(asked.filter((kind) => kind === "resync")).toHaveLength(1);
    expect(events.state).toBe("resyncing");
  });

  it("clears when a worker comes back as a new incarnation, and ignores stragglers of the old one", () => {
    const events = feed();
    events.accept(event(0), 0);
    events.accept(event(0, "b"), 0);
    events.accept(event(1, "a"), 0);
    events.accept(event(1, "b"), 0);
    expect(seen).toEqual(["a0", "clear", "b0", "b1"]);
    expect(events.counts.restarts).toBe(1);
    expect(events.state).toBe("live");
  });

  it("does not let an old state overwrite a newer view", () => {
    const events = feed({ snapshot: true });
    for (const id of [0, 1, 2]) events.accept(event(id), 0);
    events.restore(snapshot(1), 0);
    expect(seen).toEqual(["a0", "a1", "a2"]);
  });

  it("applies every event once and in order, however they are shuffled, repeated and lost, if all can be had again", () => {
    const ids = fc.array(fc.integer({ min: 0, max: 30 }), { minLength: 1, maxLength: 80 });
    fc.assert(
      fc.property(ids, (arrivals) => {
        seen = [];
        const events = feed({ replayDepth: 1000 });
        for (const id of arrivals) {
          // Answers are slow: the range asked for comes only after the next live event.
          const asked = events.accept(event(id), 0);
          if (asked?.kind !== "replay") continue;
          for (let missing = asked.fromEventId; missing <= asked.toEventId; missing++) events.accept(event(missing), 0);
        }
        const last = Math.max(...arrivals);
        expect(seen).toEqual(Array.from({ length: last + 1 }, (_, id) => `a${id}`));
        expect(events.state).toBe("live");
      }),
    );
  });
});
