import type { Nanoseconds } from "./clock.ts";
import type { Router } from "./router.ts";

/** What one router tells others of its own requests. Best effort: news may come late, or not at all. */
export type PeerNews =
  | {
      readonly kind: "placed";
      readonly request: string;
      /** Name of the replica: routers number them as they please. */
      readonly replica: string;
      readonly promptTokens: number;
      readonly cachedTokens: number;
      /** Sequence hashes of the full prompt blocks, which are expected there from now on. */
      readonly sequence: Uint32Array;
    }
  | { readonly kind: "first-token"; readonly request: string }
  | { readonly kind: "grew"; readonly request: string; readonly tokens: number }
  | {
      readonly kind: "ended";
      readonly request: string;
      /** Sequence hashes of what a replica without events must hold now, where its answer was heard. */
      readonly kept?: Uint32Array | undefined;
    };

/**
 * No model takes a prompt as long. Sums of larger numbers, and of their squares, would not be exact, and what was in them before
 * would be lost when they are taken out again.
 */
const MOST_TOKENS = 2 ** 24;

/** What of a router peers' requests are entered into. */
type SharedBooks = Pick<Router, "load" | "index" | "fleet" | "indexState">;

/**
 * Keeps a router's books of what its peers have placed, so that several in front of one fleet do not all find the same worker
 * idle: peers' requests count as load, and their prompts as expected in caches. News of requests that were never heard of is
 * passed over, and what falls silent expires like any other load.
 */
export class PeerBooks {
  readonly #router: SharedBooks;
  readonly #requests = new Map<string, Set<string>>();

  constructor(router: SharedBooks) {
    this.#router = router;
  }

  /** Requests of peers that are in flight as far as is known. */
  get size(): number {
    let size = 0;
    for (const requests of this.#requests.values()) size += requests.size;
    return size;
  }

  /** Requests of one peer that are in flight as far as is known. */
  inFlight(peer: string): number {
    return this.#requests.get(peer)?.size ?? 0;
  }

  /** Whether a request of a peer was heard of and has not ended. */
  knows(peer: string, request: string): boolean {
    return this.#requests.get(peer)?.has(idOf(peer, request)) ?? false;
  }

  /** These are all the requests that a peer has in flight: news of other ends was lost. */
  keepOnly(peer: string, open: readonly string[], nowNs: Nanoseconds): void {
    const requests = this.#requestsOf(peer);
    if (requests.size === 0) return;
    const ids = new Set(open.map((request) => idOf(peer, request)));
    for (const id of requests) if (!ids.has(id)) this.#ended(id, requests, nowNs);
  }

  hear(peer: string, news: PeerNews, nowNs: Nanoseconds): void {
    const { load } = this.#router;
    const id = idOf(peer, news.request);
    const requests = this.#requestsOf(peer);
    if (news.kind === "placed") this.#placed(id, requests, news, nowNs);
    else if (!requests.has(id)) return;
    else if (news.kind === "first-token") load.firstToken(nowNs, id);
    else if (news.kind === "grew") load.grew(nowNs, id, Math.min(news.tokens, MOST_TOKENS));
    else this.#ended(id, requests, nowNs, news.kept);
  }

  /** A peer is gone: what it had in flight is, too. */
  forget(peer: string, nowNs: Nanoseconds): void {
    const requests = this.#requestsOf(peer);
    for (const id of requests) this.#ended(id, requests, nowNs);
    this.#requests.delete(peer);
  }

  #placed(
    id: string,
    requests: Set<string>,
    { replica: name, promptTokens, cachedTokens, sequence }: PeerNews & { kind: "placed" },
    nowNs: Nanoseconds,
  ): void {
    const { load, index, fleet } = this.#router;
    const replica = fleet.find(name);
    // A retry is placed again under the same name.
    if (requests.has(id)) this.#ended(id, requests, nowNs);
    if (replica === undefined || promptTokens > MOST_TOKENS) return;
    load.reserve(nowNs, id, replica, promptTokens, Math.min(cachedTokens, promptTokens), sequence);
    index.expect(replica, sequence, sequence.length / 2, nowNs);
    requests.add(id);
  }

  #ended(id: string, requests: Set<string>, nowNs: Nanoseconds, kept?: Uint32Array): void {
    const { load, index } = this.#router;
    requests.delete(id);
    const replica = load.ended(nowNs, id)?.replica;
    if (kept === undefined || replica === undefined || this.#router.indexState(replica) !== "approximate") return;
    index.expect(replica, kept, kept.length / 2, nowNs);
  }

  #requestsOf(peer: string): Set<string> {
    let requests = this.#requests.get(peer);
    if (requests === undefined) {
      requests = new Set();
      this.#requests.set(peer, requests);
    }
    return requests;
  }
}

/** Unlike any id of the router's own. */
function idOf(peer: string, request: string): string {
  return `${peer}\u0000${request}`;
}
