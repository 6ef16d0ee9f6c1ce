import type { Nanoseconds } from "../../core/clock.ts";
import type { KvEvent } from "../../core/kv-index/types.ts";
import { emptyList } from "../engine/empty-list.ts";
import type { Engine } from "../engine/engine.ts";
import type { EngineGrowth } from "../engine/engine-request.ts";
import type { SignalChannel } from "./signal-channel.ts";

/** Messages that an outbox may keep after they were delivered. */
const MOST_DELIVERED = 1024;

/** Messages of one kind in the order they were sent, which is the order they arrive in. */
export class Outbox<T> {
  #times: Nanoseconds[] = [];
  #bodies: T[] = [];
  /** Messages lie from `#head` to `#tail`; what is behind stays, because cutting an array costs more than a message. */
  #head = 0;
  #tail = 0;
  /** When the next message arrives; Infinity if none is under way. */
  nextNs: Nanoseconds = Number.POSITIVE_INFINITY;

  send(arrivesNs: Nanoseconds, body: T): void {
    if (this.#head === this.#tail) this.nextNs = arrivesNs;
    this.#times[this.#tail] = arrivesNs;
    this.#bodies[this.#tail++] = body;
  }

  /** Hands over what has arrived by now. */
  deliver(nowNs: Nanoseconds, receive: (body: T, arrivesNs: Nanoseconds) => void): void {
    const times = this.#times;
    const bodies = this.#bodies;
    const tail = this.#tail;
    let head = this.#head;
    for (; head < tail && times[head] <= nowNs; head++) receive(bodies[head], times[head]);
    if (head === tail) this.#restart([], []);
    else if (head > MOST_DELIVERED) this.#restart(times.slice(head, tail), bodies.slice(head, tail));
    else this.#head = head;
    this.nextNs = this.#head === this.#tail ? Number.POSITIVE_INFINITY : this.#times[this.#head];
  }

  /** Forgets what is under way. */
  clear(): void {
    this.#restart([], []);
    this.nextNs = Number.POSITIVE_INFINITY;
  }

  #restart(times: Nanoseconds[], bodies: T[]): void {
    this.#head = 0;
    this.#tail = times.length;
    if (times.length === 0 && this.#times.length <= MOST_DELIVERED) return;
    this.#times = times;
    this.#bodies = bodies;
  }
}

/** A worker's ways to the router. They are its own, so that what is lost does not depend on what others send meanwhile. */
export interface WorkerChannels {
  readonly kvEvents: SignalChannel;
  readonly firstToken: SignalChannel;
  readonly growth: SignalChannel;
  readonly ended: SignalChannel;
}

/** One simulated worker: an engine, the version of its pending end of step, and its messages under way. */
export class SimWorker {
  readonly index: number;
  readonly name: string;
  /** The router's number for it. */
  readonly replica: number;
  readonly engine: Engine;
  readonly channels: WorkerChannels;
  readonly kvEvents: Outbox<KvEvent> = new Outbox();
  readonly growth: Outbox<EngineGrowth> = new Outbox();
  /** Raised whenever the time changes at which the step ends: earlier announcements are stale. */
  version = 0;
  endNs: Nanoseconds = -1;
  isStartPending = false;
  isDead = false;
  readonly #history: KvEvent[] = [];
  readonly #historyDepth: number;

  constructor(
    index: number,
    replica: number,
    name: string,
    engine: Engine,
    channels: WorkerChannels,
    historyDepth: number,
  ) {
    this.index = index;
    this.replica = replica;
    this.name = name;
    this.engine = engine;
    this.channels = channels;
    this.#historyDepth = historyDepth;
  }

  /** When the router may next hear something it does not know. */
  get nextNewsNs(): Nanoseconds {
    return Math.min(this.engine.nextChangeNs, this.kvEvents.nextNs, this.growth.nextNs);
  }

  /** Puts what the engine has let out of these two kinds on their way. */
  send(): void {
    const { kvEvents, growth } = this.engine.effects;
    for (const { atNs, event } of kvEvents) {
      if (this.#historyDepth > 0) this.#remember(event);
      const arrivesNs = this.channels.kvEvents.arrivalNs(atNs);
      if (arrivesNs !== Number.POSITIVE_INFINITY) this.kvEvents.send(arrivesNs, event);
    }
    emptyList(kvEvents);
    for (const grown of growth) {
      const arrivesNs = this.channels.growth.arrivalNs(grown.atNs);
      if (arrivesNs !== Number.POSITIVE_INFINITY) this.growth.send(arrivesNs, grown);
    }
    emptyList(growth);
  }

  /** The worker dies, with all that it had not told the router. */
  die(nowNs: Nanoseconds): void {
    this.isDead = true;
    this.engine.die(nowNs);
    this.endNs = -1;
    this.version += 1;
    this.send();
    this.kvEvents.clear();
    this.growth.clear();
  }

  /** Past events of a range, or undefined where some are no longer kept. */
  replay(fromEventId: number, toEventId: number): readonly KvEvent[] | undefined {
    const first = this.#history[0]?.eventId ?? Number.POSITIVE_INFINITY;
    if (fromEventId < first) return undefined;
    return this.#history.slice(fromEventId - first, toEventId - first + 1);
  }

  #remember(event: KvEvent): void {
    this.#history.push(event);
    // Cut in large pieces, which costs nothing per event.
    if (this.#history.length >= 2 * this.#historyDepth) this.#history.splice(0, this.#historyDepth);
  }
}
