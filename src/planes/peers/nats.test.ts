import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Heard } from "../../../test/support/heard.ts";
import { NatsServer } from "../../../test/support/nats-server.ts";
import type { PeerNews } from "../../core/peer-books.ts";
import type { PeerMessage } from "../../wire/peer-message.ts";
import { NatsLink } from "../nats/connection.ts";
import { NatsPeerPlane } from "./nats.ts";

const SMALL = 16 * 1024;

const placed = (request: string, blocks: number): PeerNews & { kind: "placed" } => ({
  kind: "placed",
  request,
  replica: "w",
  promptTokens: 16 * blocks,
  cachedTokens: 0,
  sequence: Uint32Array.from({ length: 2 * blocks }, (_, i) => i),
});

describe("gateways on a server that takes small messages only", () => {
  let server: NatsServer;
  let links: NatsLink[];
  let teller: NatsPeerPlane;
  let heard: Heard;
  let messages: PeerMessage[];

  beforeEach(async (context) => {
    server = await NatsServer.start(context, { maxPayload: SMALL });
    links = [];
    heard = new Heard();
    messages = [];
    const [mine, theirs] = [await connected(), await connected()];
    teller = new NatsPeerPlane({ link: mine, name: "a" });
    const listening = new Promise<void>((resolve) => {
      new NatsPeerPlane({ link: theirs, name: "b" }).listen({
        reached: resolve,
        heard: (message) => {
          messages.push(message);
          heard.note(message.kind);
        },
      });
    });
    await listening;
    await theirs.connection?.flush();
  });

  afterEach(async () => {
    await Promise.all((links ?? []).map((link) => link.close()));
    await server?.close();
  });

  async function connected(): Promise<NatsLink> {
    const link = await NatsLink.load({ url: server.url, reconnectMs: 20 });
    links.push(link);
    expect(await link.reached(20_000)).toBe(true);
    return link;
  }

  const tell = (kind: PeerMessage["kind"], more: Partial<PeerMessage> = {}): void =>
    teller.tell({ from: "a", blockTokens: 16, kind, news: [], open: [], ...more });

  test("tell the beginning of a prompt that is longer than a message", async () => {
    tell("news", {
      news: [placed("long", 8192), placed("short", 2), { kind: "ended", request: "x", kept: new Uint32Array(16_384) }],
    });
    tell("leaving");
    await heard.until("leaving");
    const news = messages.flatMap((message) => message.news);
    expect(news.map(({ request }) => request)).toEqual(["long", "short", "x"]);
    const [{ sequence }] = news as (PeerNews & { kind: "placed" })[];
    expect(sequence.length).toBeGreaterThan(1000);
    expect(sequence).toEqual(placed("long", 8192).sequence.subarray(0, sequence.length));
    expect(teller.counts.dropped).toBe(0);
  });

  test("say that they are there though they have more under way than a message can name, and count what they leave out", async () => {
    tell("alive", { open: Array.from({ length: 2000 }, (_, i) => `request-${i}`) });
    tell("leaving");
    await heard.until("leaving");
    expect(messages.map(({ kind, open }) => [kind, open.length])).toEqual([
      ["news", 0],
      ["leaving", 0],
    ]);
    expect(teller.counts).toMatchObject({ sent: 2, dropped: 1 });
  });

  test("keep together what they repeat of a request", async () => {
    const news = Array.from({ length: 40 }, (_, i): PeerNews[] => [
      placed(`${i}`, 100),
      { kind: "first-token", request: `${i}` },
      { kind: "grew", request: `${i}`, tokens: 3 },
    ]).flat();
    tell("known", { news });
    tell("leaving");
    await heard.until("leaving");
    const known = messages.filter(({ kind }) => kind === "known");
    expect(known.length).toBeGreaterThan(1);
    expect(known.flatMap((message) => message.news)).toEqual(news);
    for (const message of known) expect(message.news[0].kind).toBe("placed");
  });

  test("drop what they say to a connection that was closed", async () => {
    const [link] = links;
    const { connection } = link;
    await connection?.close();
    Object.defineProperty(link, "connection", { get: () => connection });
    tell("alive");
    expect(teller.counts).toMatchObject({ sent: 0, dropped: 1 });
  });
});
