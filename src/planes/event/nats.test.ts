import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Heard } from "../../../test/support/heard.ts";
import { NatsServer } from "../../../test/support/nats-server.ts";
import type { KvEvent, ReplicaSnapshot } from "../../core/kv-index/types.ts";
import { NatsLink } from "../nats/connection.ts";
import { NatsEventPublisher } from "./nats-publisher.ts";
import { NatsEventPlane } from "./nats.ts";
import type { EventListener } from "./types.ts";

const cleared = (eventId: number, incarnation = "1"): KvEvent => ({
  kind: "cleared",
  tier: "device",
  incarnation,
  eventId,
});

const snapshotOf = (lastEventId: number, incarnation = "1", blocks = 0): ReplicaSnapshot => ({
  incarnation,
  lastEventId,
  runs: blocks === 0 ? [] : [{ tier: "device", sequence: new Uint32Array(2 * blocks).fill(7), engine: null }],
});

class Hearing implements EventListener {
  readonly heard: Heard = new Heard();
  readonly snapshots: ReplicaSnapshot[] = [];

  event({ eventId }: KvEvent): void {
    this.heard.note(`event ${eventId}`);
  }

  snapshot(snapshot: ReplicaSnapshot): void {
    this.snapshots.push(snapshot);
    this.heard.note(`snapshot ${snapshot.lastEventId} of ${snapshot.incarnation}`);
  }

  replayUnavailable(): void {
    this.heard.note("unavailable");
  }

  load(): void {}

  caughtUp(): void {
    this.heard.note("caught up");
  }
}

describe("the event plane over NATS", () => {
  let server: NatsServer;
  const open: { close(): Promise<void> }[] = [];

  beforeEach(async (context) => {
    server = await NatsServer.start(context);
  });

  afterEach(async () => {
    for (const one of open.splice(0).toReversed()) await one.close();
    await server?.close();
  });

  function opened<T extends { close(): Promise<void> }>(one: T): T {
    open.push(one);
    return one;
  }

  async function link(): Promise<NatsLink> {
    return opened(await NatsLink.load({ url: server.url, reconnectMs: 1 }));
  }

  async function publisher(
    state: () => ReplicaSnapshot,
    more: { incarnation?: string; loses?: () => boolean } = {},
  ): Promise<NatsEventPublisher> {
    const { incarnation = "1", ...rest } = more;
    const source = { snapshot: state };
    const options = { link: await link(), name: "a", source, incarnation, heartbeatMs: 5, ...rest };
    const made = opened(await NatsEventPublisher.load(options));
    await made.ready;
    return made;
  }

  async function hearing(): Promise<Hearing> {
    const plane = opened(await NatsEventPlane.load({ link: await link(), answerMs: 2000 }));
    const listener = new Hearing();
    plane.subscribe("a", listener).catchUp();
    await listener.heard.until("caught up");
    return listener;
  }

  test("brings the state where the server takes small messages only, and outlives an event that is too large for it", async (context) => {
    await server.close();
    server = await NatsServer.start(context, { maxPayload: 16 * 1024 });
    let state = snapshotOf(0, "1", 20_000);
    const made = await publisher(() => state);
    const { heard, snapshots } = await hearing();
    state = snapshotOf(2);
    made.publish({ kind: "removed", engine: new Uint32Array(40_000), tier: "device", incarnation: "1", eventId: 1 });
    made.publish(cleared(2));
    await heard.until("event 2");
    expect(heard.notes).not.toContain("event 1");
    expect(snapshots[0].runs[0].sequence).toHaveLength(40_000);
  });

  test("brings a state that is larger than a message", async () => {
    await publisher(() => snapshotOf(5, "1", 100_000));
    const { snapshots } = await hearing();
    expect(snapshots[0].runs[0].sequence).toHaveLength(200_000);
    expect(snapshots[0].runs[0].sequence.every((lane) => lane === 7)).toBe(true);
  });

  test("notices that the last events of all were lost, and that nobody keeps them", async () => {
    let last = -1;
    const worker = await publisher(() => snapshotOf(last), { loses: () => last >= 1 });
    const { heard } = await hearing();
    for (last = 0; last < 4; last++) worker.publish(cleared(last));
    last = 3;
    await heard.until("snapshot 3 of 1");
    expect(heard.notes).toContain("event 0");
    expect(heard.notes).not.toContain("event 3");
  });

  test("notices a restart of a worker that has nothing to say", async () => {
    await publisher(() => snapshotOf(7));
    const { heard } = await hearing();
    await open.splice(1, 1)[0].close();
    await publisher(() => snapshotOf(-1, "2"), { incarnation: "2" });
    await heard.until("snapshot -1 of 2");
    expect(heard.notes.at(-1)).toBe("snapshot -1 of 2");
  });

  test("goes on after the server was started anew, with what happened meanwhile", async () => {
    let last = 0;
    const worker = await publisher(() => snapshotOf(last));
    const { heard } = await hearing();
    await server.stop();
    last = 1;
    worker.publish(cleared(1));
    await server.again();
    await heard.until("snapshot 1 of 1");
    last = 2;
    worker.publish(cleared(2));
    await heard.until("event 2");
    expect(heard.notes).not.toContain("event 1");
  });

  test("waits for a server that is not there yet", async () => {
    await server.stop();
    const waiting = hearing();
    const publishing = publisher(() => snapshotOf(4));
    await server.again();
    await publishing;
    expect((await waiting).heard.notes).toEqual(["snapshot 4 of 1", "caught up"]);
  });
});
