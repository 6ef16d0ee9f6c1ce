import { afterEach, describe, expect, test } from "vitest";
import type { PeerListener, PeerPlane } from "../../src/planes/peers/types.ts";
import type { PeerMessage } from "../../src/wire/peer-message.ts";
import { Heard } from "../support/heard.ts";
import type { SkippableTest } from "../support/required-component.ts";

/** Gateways that can hear each other over the plane under test. */
export interface PeersUnderTest {
  /** The way of a gateway to all others; resolves when it would be heard. */
  join(name: string): Promise<PeerPlane>;
  /** Sends bytes that no gateway of ours would send. */
  inject(bytes: Uint8Array): void;
  /** Cuts everybody off for a moment; absent where nothing can be cut. */
  cut?(): Promise<void>;
  close(): Promise<void>;
}

/** Notes what a gateway hears. */
class NotingListener implements PeerListener {
  readonly heardOf: Heard = new Heard();
  readonly messages: PeerMessage[] = [];

  reached(): void {
    this.heardOf.note("reached");
  }

  heard(message: PeerMessage): void {
    this.messages.push(message);
    this.heardOf.note(`${message.from} ${message.kind} ${message.open.join(" ")}`.trim());
  }

  timesHeard(what: string): number {
    return this.heardOf.notes.filter((note) => note === what).length;
  }
}

function messageOf(from: string, more: Partial<PeerMessage> = {}): PeerMessage {
  return { from, blockTokens: 16, kind: "alive", news: [], open: [], ...more };
}

/** What every way between gateways must do; each adapter runs it. */
export function describePeerPlaneContract(
  title: string,
  create: (test: SkippableTest) => Promise<PeersUnderTest>,
): void {
  describe(`the ${title} peer plane`, () => {
    let peers: PeersUnderTest | undefined;
    const planes: PeerPlane[] = [];

    afterEach(async () => {
      await Promise.all(planes.splice(0).map((plane) => plane.close()));
      await peers?.close();
      peers = undefined;
    });

    async function join(context: SkippableTest, name: string): Promise<{ plane: PeerPlane; listener: NotingListener }> {
      peers ??= await create(context);
      const plane = await peers.join(name);
      planes.push(plane);
      const listener = new NotingListener();
      plane.listen(listener);
      await listener.heardOf.until("reached");
      return { plane, listener };
    }

    test("carries a message to all others, as it was told, and not to whoever told it", async (context) => {
      const [a, b, c] = [await join(context, "a"), await join(context, "b"), await join(context, "c")];
      const sequence = Uint32Array.of(1, 2, 0xffff_ffff, 4);
      const placed = {
        kind: "placed",
        request: "r",
        replica: "w",
        promptTokens: 40,
        cachedTokens: 16,
        sequence,
      } as const;
      const told = messageOf("a", { kind: "news", news: [placed, { kind: "first-token", request: "r" }] });
      a.plane.tell(told);
      await Promise.all([b.listener.heardOf.until("a news"), c.listener.heardOf.until("a news")]);
      expect(b.listener.messages).toEqual([told]);
      b.plane.tell(messageOf("b"));
      await a.listener.heardOf.until("b alive");
      expect(a.listener.messages).toHaveLength(1);
      expect(a.plane.counts).toMatchObject({ sent: 1, heard: 1 });
    });

    test("keeps the order in which one gateway tells", async (context) => {
      const [a, b] = [await join(context, "a"), await join(context, "b")];
      for (let i = 0; i < 50; i++) a.plane.tell(messageOf("a", { open: [`${i}`] }));
      await b.listener.heardOf.until("a alive 49");
      expect(b.listener.messages.map(({ open }) => Number(open[0]))).toEqual([...Array(50).keys()]);
    });

    test("passes over what is damaged or of another version, and counts it", async (context) => {
      const [a, b] = [await join(context, "a"), await join(context, "b")];
      const other = new TextEncoder().encode(JSON.stringify({ version: 99 }));
      peers?.inject(Uint8Array.of(1, 2, 3));
      peers?.inject(Uint8Array.of(other.length, 0, 0, 0, ...other));
      b.plane.tell(messageOf("b"));
      await a.listener.heardOf.until("b alive");
      expect(a.plane.counts).toMatchObject({ heard: 1, malformed: 1, otherVersion: 1 });
    });

    test("carries a batch that is larger than a message may be", async (context) => {
      const [a, b] = [await join(context, "a"), await join(context, "b")];
      const sequence = new Uint32Array(16_384).fill(7);
      const news = Array.from({ length: 24 }, (_, i) => ({
        kind: "placed" as const,
        request: `${i}`,
        replica: "w",
        promptTokens: 131_072,
        cachedTokens: 0,
        sequence,
      }));
      a.plane.tell(messageOf("a", { kind: "news", news }));
      a.plane.tell(messageOf("a"));
      await b.listener.heardOf.until("a alive");
      const told = b.listener.messages.flatMap((one) => one.news.map(({ request }) => Number(request)));
      expect(told).toEqual([...Array(24).keys()]);
    });

    test("after it was cut off, says that others can be reached again, and carries on", async (context) => {
      const [a, b] = [await join(context, "a"), await join(context, "b")];
      if (peers?.cut === undefined) return;
      a.listener.heardOf.notes.length = 0;
      b.listener.heardOf.notes.length = 0;
      await peers.cut();
      await Promise.all([a.listener.heardOf.until("reached"), b.listener.heardOf.until("reached")]);
      a.plane.tell(messageOf("a"));
      await b.listener.heardOf.until("a alive");
      expect(b.listener.timesHeard("a alive")).toBe(1);
    });

    test("tells nothing any more once it is closed", async (context) => {
      const [a, b, c] = [await join(context, "a"), await join(context, "b"), await join(context, "c")];
      await b.plane.close();
      a.plane.tell(messageOf("a"));
      await c.listener.heardOf.until("a alive");
      expect(b.listener.messages).toEqual([]);
    });
  });
}
