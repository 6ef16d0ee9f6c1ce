import type { Clock } from "../core/clock.ts";
import type { Place } from "../core/effects.ts";
import type { Ending } from "../core/open-request.ts";
import { PeerBooks, type PeerNews } from "../core/peer-books.ts";
import type { RoutedRequest } from "../core/routed-request.ts";
import type { Router } from "../core/router.ts";
import type { PeerPlane, PeerPlaneCounts } from "../planes/peers/types.ts";
import type { PeerMessage } from "../wire/peer-message.ts";
import type { RequestObserver } from "./router-driver.ts";

export interface PeerSharingOptions {
  readonly router: Router;
  readonly clock: Clock;
  readonly plane: PeerPlane;
  /** Name of this gateway: no other may have it, before or after this one. */
  readonly name: string;
  /** How long news is gathered before it is told. */
  readonly batchMs?: number;
  /** How often peers hear that this gateway is there and what it has under way. */
  readonly aliveMs?: number;
  /** A peer that is silent for so long is gone. */
  readonly leaseMs?: number;
  /** Told that peers have come or gone. */
  readonly log?: (line: string) => void;
}

/** A peer as it is known here. */
export interface KnownPeer {
  readonly name: string;
  readonly silentMs: number;
  readonly inFlight: number;
}

const DEFAULT_BATCH_MS = 5;
const DEFAULT_ALIVE_MS = 1000;
const DEFAULT_LEASE_MS = 5000;
/** Growth is additive and matters little in a moment, so it is told a few times a second. */
const GROWTH_MS = 200;

interface OwnRequest {
  readonly placed: PeerNews;
  hasFirstToken: boolean;
  tokens: number;
}

/**
 * Tells the other gateways before this fleet what this one places, and keeps books of what they say: their requests are load
 * here, and their prompts expected in caches. What is lost on the way is made up for every second, and a gateway that falls
 * silent is forgotten with all it had.
 */
export class PeerSharing implements RequestObserver {
  readonly #options: PeerSharingOptions;
  readonly #books: PeerBooks;
  readonly #own = new Map<string, OwnRequest>();
  readonly #growth = new Map<string, number>();
  readonly #heardMs = new Map<string, number>();
  readonly #alive: NodeJS.Timeout;
  readonly #growing: NodeJS.Timeout;
  #news: PeerNews[] = [];
  #batch: NodeJS.Timeout | undefined;
  #freed: () => void = () => {};

  constructor(options: PeerSharingOptions) {
    this.#options = options;
    this.#books = new PeerBooks(options.router);
    this.#alive = setInterval(() => this.#tellAlive(), options.aliveMs ?? DEFAULT_ALIVE_MS).unref();
    this.#growing = setInterval(() => this.#tellGrowth(), GROWTH_MS).unref();
    options.plane.listen({
      reached: () => this.#tell("hello", []),
      heard: (message) => this.#heard(message),
    });
  }

  get name(): string {
    return this.#options.name;
  }

  get counts(): PeerPlaneCounts {
    return this.#options.plane.counts;
  }

  get peers(): readonly KnownPeer[] {
    const nowMs = performance.now();
    return [...this.#heardMs].map(([name, heardMs]) => ({
      name,
      silentMs: nowMs - heardMs,
      inFlight: this.#books.inFlight(name),
    }));
  }

  /** Calls back when ends of peers' requests may have made room for what waits here. */
  onFreed(freed: () => void): void {
    this.#freed = freed;
  }

  placed(request: RoutedRequest, { replica, predictedCachedTokens: cachedTokens }: Place): void {
    const { id, promptTokens, sequence, blocks } = request;
    const placed: PeerNews = {
      kind: "placed",
      request: id,
      replica: this.#options.router.fleet.name(replica),
      promptTokens,
      cachedTokens,
      sequence: sequence.subarray(0, 2 * blocks),
    };
    this.#own.set(id, { placed, hasFirstToken: false, tokens: 0 });
    this.#add(placed);
  }

  firstToken(id: string): void {
    const own = this.#own.get(id);
    if (own === undefined || own.hasFirstToken) return;
    own.hasFirstToken = true;
    this.#add({ kind: "first-token", request: id });
  }

  grew(id: string, tokens: number): void {
    const own = this.#own.get(id);
    if (own === undefined) return;
    own.tokens += tokens;
    this.#growth.set(id, (this.#growth.get(id) ?? 0) + tokens);
  }

  ended(id: string, { kept }: Ending): void {
    this.#growth.delete(id);
    if (this.#own.delete(id))
      this.#add({ kind: "ended", request: id, kept: kept?.sequence.subarray(0, 2 * kept.blocks) });
  }

  /** Says goodbye, so that nobody counts on what this gateway had. */
  async close(): Promise<void> {
    clearInterval(this.#alive);
    clearInterval(this.#growing);
    clearTimeout(this.#batch);
    this.#tell("leaving", []);
    await this.#options.plane.close();
  }

  #add(news: PeerNews): void {
    this.#news.push(news);
    this.#batch ??= setTimeout(() => this.#flush(), this.#options.batchMs ?? DEFAULT_BATCH_MS).unref();
  }

  #flush(): void {
    clearTimeout(this.#batch);
    this.#batch = undefined;
    if (this.#news.length === 0) return;
    const news = this.#news;
    this.#news = [];
    this.#tell("news", news);
  }

  #tellGrowth(): void {
    for (const [request, tokens] of this.#growth) this.#add({ kind: "grew", request, tokens });
    this.#growth.clear();
  }

  #tellAlive(): void {
    // In order: who is told what is under way must have heard of it.
    this.#flush();
    this.#tell("alive", [], [...this.#own.keys()]);
    const { leaseMs = DEFAULT_LEASE_MS } = this.#options;
    const nowMs = performance.now();
    for (const [peer, heardMs] of this.#heardMs) if (nowMs - heardMs > leaseMs) this.#forget(peer, "has fallen silent");
  }

  #tell(kind: PeerMessage["kind"], news: readonly PeerNews[], open: readonly string[] = []): void {
    const { plane, name: from, router } = this.#options;
    plane.tell({ from, blockTokens: router.blockTokens, kind, news, open });
  }

  #heard(message: PeerMessage): void {
    const { from, kind } = message;
    if (kind === "leaving") {
      this.#forget(from, "has left");
      return;
    }
    if (!this.#heardMs.has(from)) this.#options.log?.(`peer ${from} is there`);
    this.#heardMs.set(from, performance.now());
    const { router, clock } = this.#options;
    const nowNs = clock.nowNs();
    if (kind === "alive") this.#books.keepOnly(from, message.open, nowNs);
    else if (kind === "hello") this.#tellKnown();
    // What is repeated for somebody else is known here, and not everything in it is news.
    const isNew = ({ request }: PeerNews): boolean => !known.has(request);
    const told = message.news;
    const known = new Set(
      kind === "known" ? told.flatMap(({ request }) => (this.#books.knows(from, request) ? request : [])) : [],
    );
    const isAlike = message.blockTokens === router.blockTokens;
    for (const news of told.filter(isNew)) {
      this.#books.hear(from, isAlike ? news : withoutHashes(news), nowNs);
    }
    if (router.queued > 0) this.#freed();
  }

  /** Somebody has come who knows nothing of what is under way here. */
  #tellKnown(): void {
    this.#tellGrowth();
    this.#flush();
    const news: PeerNews[] = [];
    for (const [request, { placed, hasFirstToken, tokens }] of this.#own) {
      news.push(placed);
      if (hasFirstToken) news.push({ kind: "first-token", request });
      if (tokens > 0) news.push({ kind: "grew", request, tokens });
    }
    this.#tell("known", news);
  }

  #forget(peer: string, why: string): void {
    if (!this.#heardMs.delete(peer)) return;
    this.#books.forget(peer, this.#options.clock.nowNs());
    this.#options.log?.(`peer ${peer} ${why}`);
    if (this.#options.router.queued > 0) this.#freed();
  }
}

/** Hashes of blocks of another size match nothing here. */
function withoutHashes(news: PeerNews): PeerNews {
  if (news.kind === "placed") return { ...news, sequence: new Uint32Array(0) };
  return news.kind === "ended" ? { ...news, kept: undefined } : news;
}
