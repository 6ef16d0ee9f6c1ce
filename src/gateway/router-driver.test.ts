import { afterEach, describe, expect, test } from "vitest";
import { sequenceHashes } from "../core/hash.ts";
import type { KvEvent, ReplicaSnapshot } from "../core/kv-index/types.ts";
import { createPolicy } from "../core/policy/registry.ts";
import type { RoutedRequest } from "../core/routed-request.ts";
import { Router } from "../core/router.ts";
import type { EventListener, EventPlane } from "../planes/event/types.ts";
import { type DrivenRequest, RouterDriver } from "./router-driver.ts";

const SEQUENCE = sequenceHashes(
  Uint32Array.from({ length: 64 }, (_, i) => i),
  16,
);

/** A plane that the test speaks through, and that notes what it is asked. */
class PlayedPlane implements EventPlane {
  readonly capabilities = { replayDepth: 8, snapshot: true };
  readonly asked: string[] = [];
  listener: EventListener | undefined;

  subscribe(replica: string, listener: EventListener): ReturnType<EventPlane["subscribe"]> {
    this.listener = listener;
    this.asked.push(`subscribe ${replica}`);
    return {
      replay: (from, to) => this.asked.push(`replay ${from} to ${to}`),
      resync: () => this.asked.push("resync"),
      close: () => {
        this.asked.push("close");
        return Promise.resolve();
      },
    };
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

class NotedRequest implements DrivenRequest {
  readonly heard: string[] = [];

  place({ attempt, predictedCachedTokens }: Parameters<DrivenRequest["place"]>[0]): void {
    this.heard.push(`attempt ${attempt}, ${predictedCachedTokens} tokens cached`);
  }

  shed({ code }: Parameters<DrivenRequest["shed"]>[0]): void {
    this.heard.push(code);
  }
}

let driver: RouterDriver;

afterEach(async () => {
  await driver.close();
});

function driven(plane?: PlayedPlane): RouterDriver {
  const router = new Router(createPolicy("kv-cost"), { blockTokens: 16, maxReplicas: 4, maxBlocks: 1024 });
  let nowNs = 0;
  driver = new RouterDriver({ router, clock: { nowNs: () => ++nowNs }, events: plane, tickMs: 60_000 });
  return driver;
}

const request = (id: string): RoutedRequest => ({ id, promptTokens: 70, sequence: SEQUENCE, blocks: 4 });

const event = (eventId: number): KvEvent => ({
  kind: "stored",
  parent: eventId === 0 ? null : SEQUENCE.slice(2 * eventId - 2, 2 * eventId),
  engine: SEQUENCE.slice(2 * eventId, 2 * eventId + 2),
  local: null,
  incarnation: "1",
  eventId,
  tier: "device",
});

describe("the driver of a router", () => {
  test("asks a new worker for what it has cached already", () => {
    const plane = new PlayedPlane();
    const made = driven(plane);
    made.addReplica({ worker: "a" });
    expect(plane.asked).toEqual(["subscribe a", "resync"]);
    const state: ReplicaSnapshot = {
      incarnation: "1",
      lastEventId: 9,
      runs: [{ tier: "device", sequence: SEQUENCE, engine: null }],
    };
    plane.listener?.snapshot(state);
    const noted = new NotedRequest();
    made.offer(request("x"), noted);
    expect(noted.heard).toEqual(["attempt 1, 64 tokens cached"]);
  });

  test("asks for lost events again, and for everything if they are gone", () => {
    const plane = new PlayedPlane();
    const made = driven(plane);
    const replica = made.addReplica({ worker: "a" });
    plane.listener?.snapshot({ incarnation: "1", lastEventId: -1, runs: [] });
    plane.listener?.event(event(0));
    plane.listener?.event(event(2));
    expect(plane.asked.slice(2)).toEqual(["replay 1 to 1"]);
    expect(made.router.indexState(replica)).toBe("stale");
    plane.listener?.event(event(1));
    expect(made.router.indexState(replica)).toBe("live");
    plane.listener?.event(event(5));
    plane.listener?.replayUnavailable();
    expect(plane.asked.slice(3)).toEqual(["replay 3 to 4", "resync"]);
  });

  test("forgets a request when it has ended, however it ended", () => {
    const made = driven();
    const nobody = new NotedRequest();
    made.offer(request("x"), nobody);
    expect(nobody.heard).toEqual(["no-eligible-worker"]);
    expect(made.open).toBe(0);
    made.addReplica({ worker: "a" });
    for (const outcome of ["completed", "failed", "cancelled"] as const) {
      made.offer(request(outcome), new NotedRequest());
      expect(made.open).toBe(1);
      expect(made.ended(outcome, { outcome })).toBe(true);
      expect(made.open).toBe(0);
    }
  });

  test("says that an end was not the last when the router tries again", () => {
    const made = driven();
    for (const worker of ["a", "b"]) made.addReplica({ worker });
    const noted = new NotedRequest();
    made.offer(request("x"), noted);
    expect(made.ended("x", { outcome: "failed" })).toBe(false);
    expect(noted.heard).toEqual(["attempt 1, 0 tokens cached", "attempt 2, 0 tokens cached"]);
    expect(made.open).toBe(1);
    expect(made.ended("x", { outcome: "failed" })).toBe(true);
  });
});
