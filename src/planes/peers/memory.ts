import { type PeerMessage, decodePeerMessage, encodePeerMessage } from "../../wire/peer-message.ts";
import type { PeerListener, PeerPlane, PeerPlaneCounts } from "./types.ts";

/** Gateways of one process that hear each other, for tests. */
export class MemoryPeers {
  readonly #planes = new Set<MemoryPeerPlane>();

  join(): PeerPlane {
    const plane = new MemoryPeerPlane(this.#planes);
    this.#planes.add(plane);
    return plane;
  }

  /** Puts bytes on the wire that no gateway of ours would send. */
  inject(bytes: Uint8Array): void {
    for (const plane of this.#planes) plane.receive(bytes);
  }
}

class MemoryPeerPlane implements PeerPlane {
  readonly #planes: Set<MemoryPeerPlane>;
  readonly #counts = { sent: 0, dropped: 0, heard: 0, malformed: 0, otherVersion: 0 };
  #listener: PeerListener | undefined;

  constructor(planes: Set<MemoryPeerPlane>) {
    this.#planes = planes;
  }

  get counts(): PeerPlaneCounts {
    return { ...this.#counts };
  }

  tell(message: PeerMessage): void {
    const bytes = encodePeerMessage(message);
    this.#counts.sent++;
    for (const plane of this.#planes) if (plane !== this) queueMicrotask(() => plane.receive(bytes));
  }

  listen(listener: PeerListener): void {
    this.#listener = listener;
    queueMicrotask(() => this.#listener?.reached());
  }

  receive(bytes: Uint8Array): void {
    if (this.#listener === undefined) return;
    const { message, problem } = decodePeerMessage(bytes);
    if (message !== undefined) {
      this.#counts.heard++;
      this.#listener.heard(message);
    } else if (problem === "malformed") this.#counts.malformed++;
    else this.#counts.otherVersion++;
  }

  close(): Promise<void> {
    this.#planes.delete(this);
    this.#listener = undefined;
    return Promise.resolve();
  }
}
