import { Accounts, type Accounting } from "../../core/accounts.ts";
import type { ShedReason } from "../../core/admission/types.ts";
import { createPolicy } from "../../core/policy/registry.ts";
import { Router } from "../../core/router.ts";
import type {
  AttemptEnd,
  DecidedRequest,
  Decider,
  NotRetried,
  OfferedRequest,
  Placement,
  Readiness,
} from "../decider.ts";
import { LocalDecider } from "../local-decider.ts";
import { SocketDecider } from "./socket-decider.ts";

export interface FailoverDeciderOptions {
  /** Socket of the decider. */
  readonly path: string;
  readonly blockTokens: number;
  /** Told when the decider is lost and when it is back. */
  readonly changed?: (isPresent: boolean) => void;
}

/** The policy that needs to know next to nothing. */
const STAND_IN_POLICY = "power-of-two";
const STAND_IN_REPLICAS = 4096;
const STAND_IN_BLOCKS = 1024;

/**
 * The decider of another process, and a stand-in for when it is away: a router of this process that knows the workers last
 * heard of, and nothing of their caches. A request is led to its end by whoever it was placed by; one that was still
 * waiting when the decider was lost is offered to the stand-in. Nothing of what the stand-in places has a decision record.
 */
export class FailoverDecider implements Decider {
  readonly #options: FailoverDeciderOptions;
  readonly #remote: SocketDecider;
  readonly #standIn: LocalDecider;
  /** Requests placed by a decider that is gone. */
  readonly #orphaned = new Accounts();
  readonly #led = new Map<string, LedRequest>();
  readonly #firstNews: Promise<void>;
  #isPresent = false;
  #wasEverPresent = false;

  constructor(options: FailoverDeciderOptions) {
    this.#options = options;
    const { blockTokens } = options;
    this.#standIn = new LocalDecider({
      router: new Router(createPolicy(STAND_IN_POLICY), {
        blockTokens,
        maxReplicas: STAND_IN_REPLICAS,
        maxBlocks: STAND_IN_BLOCKS,
        maxExpectations: STAND_IN_BLOCKS,
        // What a proxy sees of the load is its own share of it, which says little about who is busy.
        admission: { mode: "engine" },
        records: { detail: "summary", capacity: 1 },
      }),
    });
    let heard = (): void => {};
    this.#firstNews = new Promise((resolve) => (heard = resolve));
    this.#remote = new SocketDecider({
      path: options.path,
      changed: () => {
        this.#remoteChanged();
        if (this.#isPresent) heard();
      },
    });
  }

  /** Resolves when the decider has first told of its fleet. */
  get ready(): Promise<void> {
    return this.#firstNews;
  }

  /** What was done without the decider since the start. */
  get standInAccounting(): Accounting {
    const standIn = this.#standIn.accounting;
    const orphaned = this.#orphaned.totals;
    const sum = Object.entries(standIn).map(([account, count]) => [
      account,
      count + orphaned[account as keyof Accounting],
    ]);
    return Object.fromEntries(sum) as Accounting;
  }

  offer(request: OfferedRequest, decided: DecidedRequest): void {
    const led = new LedRequest(request, decided, this.#isPresent ? this.#remote : this.#standIn, (id) =>
      this.#led.delete(id),
    );
    this.#led.set(request.id, led);
    led.leader.offer(request, led);
  }

  sent(id: string): void {
    this.#led.get(id)?.leader.sent(id);
  }

  firstToken(id: string): void {
    this.#led.get(id)?.leader.firstToken(id);
  }

  grew(id: string, tokens: number): void {
    this.#led.get(id)?.leader.grew(id, tokens);
  }

  ended(id: string, end: AttemptEnd): void {
    const led = this.#led.get(id);
    if (led === undefined) return;
    led.reported = end;
    if (led.isOrphan) this.#endOrphan(led, end);
    else led.leader.ended(id, end);
  }

  refused(reason: string, key?: string): void {
    if (this.#isPresent) this.#remote.refused(reason, key);
    else this.#standIn.refused(reason);
  }

  invalid(code: string): void {
    (this.#isPresent ? this.#remote : this.#standIn).invalid(code);
  }

  models(): readonly string[] {
    return this.#remote.models();
  }

  adapters(): readonly string[] {
    return this.#remote.adapters();
  }

  readiness(): Readiness {
    if (this.#isPresent) return this.#remote.readiness();
    return { ...this.#standIn.readiness(), decider: "fallback" };
  }

  metricsText(): Promise<string> {
    return this.#isPresent ? this.#remote.metricsText() : this.#standIn.metricsText();
  }

  async close(): Promise<void> {
    await this.#remote.close();
    await this.#standIn.close();
  }

  #remoteChanged(): void {
    const { isPresent } = this.#remote;
    const wasPresent = this.#isPresent;
    this.#isPresent = isPresent;
    if (isPresent) {
      this.#learnWorkers();
      this.#remote.reportStandIn(this.standInAccounting);
    } else if (wasPresent) this.#takeOver();
    if (isPresent !== wasPresent && this.#wasEverPresent) this.#options.changed?.(isPresent);
    this.#wasEverPresent ||= isPresent;
  }

  #learnWorkers(): void {
    const { fleet } = this.#standIn;
    const { workers } = this.#remote.news;
    const present = new Set(workers.map(({ name }) => name));
    for (const { worker } of fleet.workers) if (!present.has(worker.name)) fleet.left(worker.name);
    for (const { name, url, dpRanks, isReady } of workers) {
      fleet.appeared({ name, url, dpRanks });
      fleet.setCircuit(name, isReady ? "closed" : "open");
    }
  }

  #takeOver(): void {
    for (const led of this.#led.values()) {
      if (led.leader !== this.#remote) continue;
      led.isOrphan = true;
      // First: of a request that nobody wants any more the end is reported while it waits, and it is not to be placed.
      if (led.reported !== undefined) this.#endOrphan(led, led.reported);
      else if (!led.isPlaced) this.#standInFor(led);
    }
  }

  /** There is nobody to ask about the request: it is tried again by the stand-in, or it is over. */
  #endOrphan(led: LedRequest, end: AttemptEnd): void {
    const { outcome, mayRetry, ttftMs, continuation } = end;
    const isRepeatable = (outcome === "failed" || outcome === "rejected") && mayRetry !== false && ttftMs === undefined;
    if (continuation !== undefined) led.request = { ...led.request, ...continuation };
    if (isRepeatable || continuation !== undefined) this.#standInFor(led);
    else {
      this.#orphaned.offer();
      this.#orphaned.end(end.outcome);
      led.over();
    }
  }

  #standInFor(led: LedRequest): void {
    led.isOrphan = false;
    led.isPlaced = false;
    led.reported = undefined;
    led.leader = this.#standIn;
    this.#standIn.offer(led.request, led);
  }
}

/** A request with whoever decides about it. */
class LedRequest implements DecidedRequest {
  request: OfferedRequest;
  leader: Decider;
  /** Sent somewhere, and not back yet. */
  isPlaced = false;
  /** Whoever placed it is gone. */
  isOrphan = false;
  /** The end that its leader was told of and has not answered yet. */
  reported: AttemptEnd | undefined;
  readonly #decided: DecidedRequest;
  readonly #forget: (id: string) => void;

  constructor(request: OfferedRequest, decided: DecidedRequest, leader: Decider, forget: (id: string) => void) {
    this.request = request;
    this.leader = leader;
    this.#decided = decided;
    this.#forget = forget;
  }

  place(placement: Placement): void {
    this.isPlaced = true;
    this.reported = undefined;
    const isStandIn = this.leader instanceof LocalDecider;
    this.#decided.place(isStandIn ? { ...placement, decision: undefined, isToBeHeard: false } : placement);
  }

  shed(reason: ShedReason): void {
    this.#forget(this.request.id);
    this.#decided.shed(reason);
  }

  over(notRetried?: NotRetried): void {
    this.#forget(this.request.id);
    this.#decided.over(notRetried);
  }
}
