import type { Subscription } from "@nats-io/transport-node";
import type { PeerNews } from "../../core/peer-books.ts";
import { type PeerMessage, decodePeerMessage, encodePeerMessage } from "../../wire/peer-message.ts";
import type { NatsLink } from "../nats/connection.ts";
import { peerSubject } from "../nats/subjects.ts";
import type { PeerListener, PeerPlane, PeerPlaneCounts } from "./types.ts";

export interface NatsPeerPlaneOptions {
  /** The connection; whoever made it closes it. */
  readonly link: NatsLink;
  /** Name of this gateway, by which it knows its own messages. */
  readonly name: string;
}

/** Gateways that share a NATS server and a prefix: all publish on one subject, as plain messages. */
export class NatsPeerPlane implements PeerPlane {
  readonly #options: NatsPeerPlaneOptions;
  readonly #subject: string;
  readonly #counts = { sent: 0, dropped: 0, heard: 0, malformed: 0, otherVersion: 0 };
  #subscription: Subscription | undefined;
  #stopWatching: () => void = () => {};

  constructor(options: NatsPeerPlaneOptions) {
    this.#options = options;
    this.#subject = peerSubject(options.link.prefix);
  }

  get counts(): PeerPlaneCounts {
    return { ...this.#counts };
  }

  tell(message: PeerMessage): void {
    const { link } = this.#options;
    if (link.connection === undefined) return;
    const bytes = encodePeerMessage(message);
    const { news } = message;
    if (bytes.length <= link.partBytes) this.#publish(bytes);
    else if (news.length > 1) {
      const half = halfOf(message);
      this.tell({ ...message, news: news.slice(0, half) });
      this.tell({ ...message, news: news.slice(half) });
    } else if (news.length === 1 && hashesOf(news[0]).length > 0) {
      this.tell({ ...message, news: [withHalfOfHashes(news[0])] });
    } else if (bytes.length <= link.payloadBytes) this.#publish(bytes);
    else this.#drop(message);
  }

  listen(listener: PeerListener): void {
    this.#stopWatching = this.#options.link.watch({
      up: (connection, isFirst) => {
        // The client subscribes again by itself after a connection was lost.
        if (isFirst) {
          this.#subscription = connection.subscribe(this.#subject, {
            callback: (error, message) => {
              if (error === null) this.#receive(message.data, listener);
            },
          });
        }
        listener.reached();
      },
    });
  }

  close(): Promise<void> {
    this.#stopWatching();
    if (this.#options.link.connection !== undefined) this.#subscription?.unsubscribe();
    return Promise.resolve();
  }

  #publish(bytes: Uint8Array): void {
    try {
      this.#options.link.connection?.publish(this.#subject, bytes);
      this.#counts.sent++;
    } catch {
      // The connection was closed a moment ago, or the server allows less than it did.
      this.#counts.dropped++;
    }
  }

  /** A list of more requests than a message can name is not told; that this gateway is there is. */
  #drop(message: PeerMessage): void {
    this.#counts.dropped++;
    if (message.open.length > 0) this.tell({ ...message, kind: "news", open: [] });
  }

  #receive(bytes: Uint8Array, listener: PeerListener): void {
    const { message, problem } = decodePeerMessage(bytes);
    if (message === undefined) this.#counts[problem === "malformed" ? "malformed" : "otherVersion"]++;
    else if (message.from !== this.#options.name) {
      this.#counts.heard++;
      listener.heard(message);
    }
  }
}

/** Where news is cut in two. What repeats a request stays together: whoever has heard its first part passes over the rest. */
function halfOf({ kind, news }: PeerMessage): number {
  const half = news.length >> 1;
  if (kind !== "known") return half;
  const before = news.findLastIndex((one, at) => at <= half && one.kind === "placed");
  return before > 0 ? before : half;
}

function hashesOf(news: PeerNews): Uint32Array {
  const hashes = news.kind === "placed" ? news.sequence : news.kind === "ended" ? news.kept : undefined;
  return hashes ?? new Uint32Array(0);
}

/** The beginning of a prompt is what others can share. */
function withHalfOfHashes(news: PeerNews): PeerNews {
  const hashes = hashesOf(news);
  const half = hashes.subarray(0, 2 * (hashes.length >> 2));
  if (news.kind === "placed") return { ...news, sequence: half };
  return news.kind === "ended" ? { ...news, kept: half } : news;
}
