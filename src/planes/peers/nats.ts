import type { Subscription } from "@nats-io/transport-node";
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

/** Half of what servers allow unless told otherwise. */
const MOST_BYTES = 512 * 1024;

/** Gateways that share a NATS server and a prefix: all publish on one subject, as plain messages. */
export class NatsPeerPlane implements PeerPlane {
  readonly #options: NatsPeerPlaneOptions;
  readonly #subject: string;
  readonly #counts = { sent: 0, heard: 0, malformed: 0, otherVersion: 0 };
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
    const { connection } = this.#options.link;
    if (connection === undefined) return;
    const bytes = encodePeerMessage(message);
    const { news } = message;
    if (bytes.length > MOST_BYTES && news.length > 1) {
      const half = news.length >> 1;
      this.tell({ ...message, news: news.slice(0, half) });
      this.tell({ ...message, news: news.slice(half) });
      return;
    }
    this.#counts.sent++;
    connection.publish(this.#subject, bytes);
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

  #receive(bytes: Uint8Array, listener: PeerListener): void {
    const { message, problem } = decodePeerMessage(bytes);
    if (message === undefined) this.#counts[problem === "malformed" ? "malformed" : "otherVersion"]++;
    else if (message.from !== this.#options.name) {
      this.#counts.heard++;
      listener.heard(message);
    }
  }
}
