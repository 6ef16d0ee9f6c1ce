import { describe, expect, test } from "vitest";
import type { KvEvent, ReplicaSnapshot } from "../../core/kv-index/types.ts";
import { MemoryEventPlane } from "./memory.ts";
import type { EventListener } from "./types.ts";

const STATE: ReplicaSnapshot = { incarnation: "1", lastEventId: 3, runs: [] };

function event(eventId: number): KvEvent {
  return { kind: "cleared", incarnation: "1", eventId, tier: "device" };
}

function listener(): EventListener & { heard: string[] } {
  const heard: string[] = [];
  return {
    heard,
    event: ({ eventId }) => heard.push(`event ${eventId}`),
    snapshot: ({ lastEventId }) => heard.push(`snapshot ${lastEventId}`),
    replayUnavailable: () => heard.push("unavailable"),
    load: ({ running }) => heard.push(`load ${running}`),
    caughtUp: () => heard.push("caught up"),
  };
}

/** Deliveries are microtasks; after this one those asked for before have happened. */
const delivered = (): Promise<void> => Promise.resolve();

describe("the event plane in memory", () => {
  test("delivers a replica's events in order to those who listen to it, after the publisher's own work", async () => {
    const plane = new MemoryEventPlane();
    const [mine, other] = [listener(), listener()];
    plane.subscribe("a", mine);
    plane.subscribe("b", other);
    const publisher = plane.publisher("a", { snapshot: () => STATE });
    for (const id of [0, 1, 2]) publisher.publish(event(id));
    expect(mine.heard).toEqual([]);
    await delivered();
    expect(mine.heard).toEqual(["event 0", "event 1", "event 2"]);
    expect(other.heard).toEqual([]);
  });

  test("sends a range again while it has it, and says so when it has not", async () => {
    const plane = new MemoryEventPlane({ replayDepth: 2 });
    const publisher = plane.publisher("a", { snapshot: () => STATE });
    for (const id of [0, 1, 2, 3]) publisher.publish(event(id));
    const late = listener();
    const subscription = plane.subscribe("a", late);
    subscription.replay(2, 3);
    subscription.replay(1, 3);
    subscription.resync();
    await delivered();
    expect(late.heard).toEqual(["event 2", "event 3", "unavailable", "snapshot 3"]);
  });

  test("delivers nothing after a subscription or the plane is closed", async () => {
    const plane = new MemoryEventPlane();
    const publisher = plane.publisher("a", { snapshot: () => STATE });
    const [leaving, staying] = [listener(), listener()];
    const subscription = plane.subscribe("a", leaving);
    plane.subscribe("a", staying);
    publisher.publish(event(0));
    await subscription.close();
    publisher.publish(event(1));
    await delivered();
    expect(leaving.heard).toEqual([]);
    publisher.publish(event(2));
    await plane.close();
    expect(staying.heard).toEqual(["event 0", "event 1"]);
  });
});
