import type { Nanoseconds } from "../clock.ts";
import { WarmpathError } from "../errors.ts";
import { ExpiryHeap } from "./expiry-heap.ts";
import { PriorityBands } from "./priority-bands.ts";
import type { ExpiryReason, QueueEntry, QueueNode } from "./queue-entry.ts";
import type { QueueLimits } from "./types.ts";

/** What the queue must know of a request beside the request itself. */
export interface PushOptions {
  readonly id: string;
  /** Larger goes first. */
  readonly priority: number;
  readonly nowNs: Nanoseconds;
  readonly deadlineNs?: Nanoseconds | undefined;
}

/** `full`: not taken. `displaced`: taken, and `entry` had to leave for it. */
export type PushResult<T> =
  | { readonly kind: "queued" }
  | { readonly kind: "full" }
  | { readonly kind: "displaced"; readonly entry: QueueEntry<T> };

/** A request that waited too long, and by whose measure. */
export interface ExpiredEntry<T> {
  readonly entry: QueueEntry<T>;
  readonly reason: ExpiryReason;
}

/** A drain's verdict on one entry: placed and to be removed, to be left waiting, or left waiting like all behind it. */
export type DrainVerdict = "taken" | "kept" | "stop";

/**
 * The router's central queue: bounded, larger priorities first, first come first served within one. When it is full, a
 * request of a higher priority displaces the youngest of the lowest, so overload sheds the lowest band first.
 *
 * It does not look at the clock by itself: call `expire` before `push` and `drain`, or what is past its time still
 * counts against the limit and may still be placed.
 */
export class AdmissionQueue<T> {
  readonly #byId: Map<string, QueueNode<T>> = new Map();
  readonly #bands: PriorityBands<T> = new PriorityBands();
  readonly #expiries: ExpiryHeap<T> = new ExpiryHeap();
  #limits: QueueLimits;
  #pushes = 0;
  #draining = false;

  constructor(limits: QueueLimits) {
    this.#limits = limits;
  }

  get limits(): QueueLimits {
    return this.#limits;
  }

  /** Changes the bounds for those who come; whoever waits keeps its place and its time. */
  setLimits(limits: QueueLimits): void {
    this.#limits = limits;
  }

  /** Requests waiting. */
  get size(): number {
    return this.#byId.size;
  }

  /** Takes a request in, if need be in the place of a lesser one. */
  push(item: T, options: PushOptions): PushResult<T> {
    this.#requireNotDraining();
    const { id, priority, nowNs, deadlineNs } = options;
    if (Number.isNaN(priority) || Number.isNaN(deadlineNs)) {
      throw new WarmpathError("WP_INVALID_INPUT", `request ${id}: priority and deadlineNs must be numbers, not NaN`);
    }
    if (this.#byId.has(id)) throw new WarmpathError("WP_DUPLICATE_REQUEST", `request ${id} is already queued`);
    let displaced: QueueNode<T> | undefined;
    if (this.#byId.size >= this.#limits.maxRequests) {
      displaced = this.#bands.last;
      if (displaced === undefined || displaced.priority >= priority) return { kind: "full" };
      this.#unlink(displaced);
    }
    this.#link(item, id, priority, nowNs, deadlineNs);
    return displaced === undefined ? { kind: "queued" } : { kind: "displaced", entry: displaced };
  }

  /** The one to be placed next. */
  peek(): QueueEntry<T> | undefined {
    return this.#bands.first;
  }

  /** Visits all that wait, in the order they are to be placed. */
  forEach(visit: (entry: QueueEntry<T>) => void): void {
    this.drain((entry) => {
      visit(entry);
      return "kept";
    });
  }

  /** Takes a request out, wherever it stands; undefined if it is not here. */
  remove(id: string): QueueEntry<T> | undefined {
    this.#requireNotDraining();
    const node = this.#byId.get(id);
    if (node !== undefined) this.#unlink(node);
    return node;
  }

  /** Takes out all whose time is over, the earliest first. */
  expire(nowNs: Nanoseconds): ExpiredEntry<T>[] {
    this.#requireNotDraining();
    const expired: ExpiredEntry<T>[] = [];
    for (;;) {
      const node = this.#expiries.first;
      if (node === undefined || node.expiresNs > nowNs) return expired;
      this.#unlink(node);
      expired.push({ entry: node, reason: node.expiryReason });
    }
  }

  /** When `expire` will next have something to do; undefined if nothing waits. */
  nextExpiryNs(): Nanoseconds | undefined {
    return this.#expiries.first?.expiresNs;
  }

  /**
   * Walks the queue in order and takes out what the visitor has placed; returns how many. The visitor must not change
   * the queue by itself: a walk over a list that changes beneath it would skip or repeat requests.
   */
  drain(visit: (entry: QueueEntry<T>) => DrainVerdict): number {
    this.#requireNotDraining();
    this.#draining = true;
    let taken = 0;
    try {
      let node = this.#bands.first;
      while (node !== undefined) {
        const verdict = visit(node);
        if (verdict === "stop") break;
        const next: QueueNode<T> | undefined = this.#bands.after(node);
        if (verdict === "taken") {
          this.#unlink(node);
          taken += 1;
        }
        node = next;
      }
    } finally {
      this.#draining = false;
    }
    return taken;
  }

  #link(item: T, id: string, priority: number, queuedNs: Nanoseconds, deadlineNs: Nanoseconds | undefined): void {
    const timeoutNs = queuedNs + this.#limits.maxWaitNs;
    const byDeadline = deadlineNs !== undefined && deadlineNs <= timeoutNs;
    const node: QueueNode<T> = {
      id,
      item,
      priority,
      queuedNs,
      deadlineNs,
      expiresNs: byDeadline ? deadlineNs : timeoutNs,
      expiryReason: byDeadline ? "deadline" : "queue-timeout",
      sequence: this.#pushes++,
      previous: undefined,
      next: undefined,
      heapIndex: -1,
    };
    this.#byId.set(id, node);
    this.#bands.append(node);
    this.#expiries.push(node);
  }

  #unlink(node: QueueNode<T>): void {
    this.#byId.delete(node.id);
    this.#bands.remove(node);
    this.#expiries.remove(node);
  }

  #requireNotDraining(): void {
    if (this.#draining) {
      throw new WarmpathError("WP_INVALID_STATE", "the admission queue cannot be changed while it is being drained");
    }
  }
}
