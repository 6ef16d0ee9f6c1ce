import { setTimeout as pause } from "node:timers/promises";
import type * as Zmq from "zeromq";
import { WarmpathError } from "../../../core/errors.ts";
import type { KvChange, KvEvent } from "../../../core/kv-index/types.ts";
import { EngineDecoder } from "../../../wire/kv-events/engine-decoder.ts";
import { Latch } from "../parts/latch.ts";
import type { EventListener, EventSubscription } from "../types.ts";
import { EngineLife, type EngineMessage } from "./engine-life.ts";
import { END_OF_REPLAY, endpointOfRank, sequenceFrame, sequenceOf } from "../parts/zmq-frames.ts";

/** What all subscriptions of a plane have seen. */
export interface Tally {
  events: number;
  undecodable: number;
  ignored: number;
  reconnects: number;
}

export interface ZmqSubscriptionOptions {
  readonly zmq: typeof Zmq;
  /** Nobody listens any more. */
  readonly closed: () => void;
  readonly listener: EventListener;
  readonly endpoint: string;
  /** The first rank's endpoint that sends events again. */
  readonly replayUrl: string | undefined;
  readonly dpRank: number;
  readonly topic: string;
  readonly blockTokens: number;
  /** How long the next part of a replay may take. */
  readonly answerMs: number;
  readonly tally: Tally;
}

interface DecodedMessage extends EngineMessage {
  readonly changes: readonly KvChange[];
}

/** A batch without events still has a number; removing nothing is a change that changes nothing. */
const NO_CHANGE: KvChange = { kind: "removed", engine: new Uint32Array(0), tier: "device" };

/** One engine's messages: a SUB socket for what happens, and the replay socket for what has happened. */
export class ZmqSubscription implements EventSubscription {
  readonly #options: ZmqSubscriptionOptions;
  readonly #decoder: EngineDecoder;
  readonly #socket: Zmq.Subscriber;
  readonly #life = new EngineLife();
  readonly #connected = new Latch();
  readonly #reading: Promise<void>;
  /** Questions to the engine go one after another. */
  #asking: Promise<unknown> = Promise.resolve();
  /** Reconnections of which it is not known yet whether they found the same engine. */
  #unsettled = 0;
  /** Messages that wait until it is. */
  readonly #held: DecodedMessage[] = [];
  #isConnected = false;
  #isClosed = false;
  #hasRefused = false;
  #mayReplay: boolean;

  constructor(options: ZmqSubscriptionOptions) {
    this.#options = options;
    this.#mayReplay = options.replayUrl !== undefined;
    this.#decoder = new EngineDecoder(options.blockTokens);
    this.#socket = new options.zmq.Subscriber({ receiveHighWaterMark: 100_000, linger: 0 });
    this.#socket.events.on("handshake", () => this.#handshake());
    connect(this.#socket, options.endpoint);
    this.#socket.subscribe(options.topic);
    this.#reading = this.#read();
  }

  replay(fromEventId: number, toEventId: number): void {
    void this.#inTurn(async () => {
      const { incarnation } = this.#life;
      const kept = await this.#ask(fromEventId);
      // Without an answer the feed asks again, and gives up by itself.
      if (kept === undefined || incarnation !== this.#life.incarnation) return;
      const wanted = kept.filter(({ sequence }) => sequence >= fromEventId && sequence <= toEventId);
      if (wanted.length < toEventId - fromEventId + 1) this.#options.listener.replayUnavailable();
      else for (const message of wanted) this.#deliver(message);
    });
  }

  /** Engines cannot send their state, and the plane says so: nobody asks. */
  resync(): void {}

  catchUp(): void {
    void this.#catchUp();
  }

  async close(): Promise<void> {
    this.#options.closed();
    this.#isClosed = true;
    this.#connected.open();
    this.#socket.close();
    await this.#reading;
    await this.#asking;
  }

  async #catchUp(): Promise<void> {
    await this.#connected.opened;
    // Between two attempts others have their turn: an engine without answers must not keep them waiting for good.
    while (!this.#isClosed && (await this.#inTurn(() => this.#deliverAllKept())) === undefined) {
      await pause(this.#options.answerMs, undefined, { ref: false });
    }
    if (!this.#isClosed) this.#options.listener.caughtUp();
  }

  /** Reads until the socket is closed. */
  async #read(): Promise<void> {
    for await (const [, sequenceBytes, payload] of this.#socket) {
      const message = this.#decoded(sequenceOf(sequenceBytes), payload);
      if (message === undefined || this.#isClosed) continue;
      const ageMs = Date.now() - 1000 * message.timestampSeconds;
      // A clock that was never set, or none at all, says nothing of how long the message took.
      if (message.timestampSeconds > 0 && Number.isFinite(ageMs)) this.#options.listener.lag?.(Math.max(0, ageMs));
      if (this.#unsettled === 0) this.#hear(message);
      else this.#held.push(message);
    }
  }

  #hear(message: DecodedMessage): void {
    this.#life.heard(message);
    this.#deliver(message);
  }

  /** A connection is there; after the first one it must be found out what happened in between. */
  #handshake(): void {
    const isFirst = !this.#isConnected;
    this.#isConnected = true;
    this.#connected.open();
    if (isFirst) return;
    this.#options.tally.reconnects++;
    const { last } = this.#life;
    if (!this.#mayReplay || last === undefined) return;
    this.#unsettled++;
    void this.#inTurn(() => this.#findOut(last.sequence));
  }

  async #findOut(lastSequence: number): Promise<void> {
    const kept = await this.#ask(lastSequence);
    if (kept !== undefined) {
      if (this.#life.isContinuedBy(kept)) for (const message of kept.slice(1)) this.#deliver(message);
      else await this.#beginLife();
    }
    this.#unsettled--;
    if (this.#unsettled > 0) return;
    for (const message of this.#held.splice(0)) this.#hear(message);
  }

  async #beginLife(): Promise<void> {
    this.#life.begin();
    const { incarnation } = this.#life;
    const count = (await this.#deliverAllKept()) ?? 0;
    // An engine that has said nothing yet has cached nothing yet, and nothing else would tell so.
    if (count === 0 && !this.#isClosed) this.#options.listener.snapshot({ incarnation, lastEventId: -1, runs: [] });
  }

  /** Delivers everything that the engine still has of its past and returns how much; undefined if it does not answer. */
  async #deliverAllKept(): Promise<number | undefined> {
    const kept = await this.#ask(0);
    for (const message of kept ?? []) this.#deliver(message);
    return kept?.length;
  }

  #deliver(message: DecodedMessage): void {
    if (this.#isClosed) return;
    const { sequence, changes } = message;
    const [first = NO_CHANGE, ...more] = changes;
    this.#life.replayed(message);
    const { incarnation } = this.#life;
    const event: KvEvent = { ...first, incarnation, eventId: sequence, ...(more.length > 0 && { more }) };
    this.#options.tally.events += Math.max(1, changes.length);
    this.#options.listener.event(event);
  }

  /**
   * What the engine has kept from a number on, or undefined if it does not answer. A REQ socket could read only the first of
   * the answers, so this is a DEALER that frames its question as REQ does.
   */
  async #ask(fromSequence: number): Promise<DecodedMessage[] | undefined> {
    if (this.#isClosed) return undefined;
    let socket: Zmq.Dealer | undefined;
    try {
      socket = this.#replaySocket();
      if (socket === undefined) return [];
      await socket.send(["", sequenceFrame(fromSequence)]);
      const kept: DecodedMessage[] = [];
      for (;;) {
        const [, sequenceBytes, payload] = await socket.receive();
        if (this.#isClosed) return undefined;
        if (sequenceBytes === undefined || sequenceBytes.equals(END_OF_REPLAY)) return kept;
        const message = this.#decoded(sequenceOf(sequenceBytes), payload);
        if (message !== undefined) kept.push(message);
      }
    } catch {
      return undefined;
    } finally {
      socket?.close();
    }
  }

  /** Undefined where nobody sends anything again. */
  #replaySocket(): Zmq.Dealer | undefined {
    const { zmq, replayUrl, dpRank, answerMs, listener } = this.#options;
    if (!this.#mayReplay || replayUrl === undefined) return undefined;
    const socket = new zmq.Dealer({ linger: 0, receiveTimeout: answerMs, sendTimeout: answerMs });
    try {
      connect(socket, endpointOfRank(replayUrl, dpRank));
      return socket;
    } catch (error) {
      socket.close();
      this.#mayReplay = false;
      listener.problem?.(`what it says is heard, and nothing can be asked for again: ${(error as Error).message}`);
      return undefined;
    }
  }

  #decoded(sequence: number | undefined, payload: Uint8Array | undefined): DecodedMessage | undefined {
    const batch = sequence === undefined || payload === undefined ? undefined : this.#decoder.decode(payload);
    if (sequence === undefined || payload === undefined || batch === undefined) {
      this.#options.tally.undecodable++;
      return undefined;
    }
    if (batch.otherBlockTokens !== undefined) this.#refuse(batch.otherBlockTokens);
    this.#options.tally.undecodable += batch.undecodable;
    this.#options.tally.ignored += batch.ignored;
    return { sequence, payload, timestampSeconds: batch.timestampSeconds, changes: batch.changes };
  }

  /** Blocks of one size cannot be found among blocks of another; of SGLang's default, one token, there is a hash for each. */
  #refuse(otherBlockTokens: number): void {
    if (this.#hasRefused) return;
    this.#hasRefused = true;
    const { blockTokens, listener } = this.#options;
    const sizes = `its KV blocks have ${otherBlockTokens} tokens, the router counts in blocks of ${blockTokens}`;
    const advice = `--page-size ${blockTokens} (SGLang) or --block-size ${blockTokens} (vLLM)`;
    listener.problem?.(`${sizes}; its events are refused. Start it with ${advice}, or the router with its size`);
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T | undefined> {
    const done = this.#asking.then(() => (this.#isClosed ? undefined : work()));
    this.#asking = done;
    return done;
  }
}

/** Throws where ZMQ takes the endpoint for none at all; one that is merely not there is tried again and again. */
function connect(socket: Zmq.Subscriber | Zmq.Dealer, endpoint: string): void {
  try {
    socket.connect(endpoint);
  } catch (cause) {
    socket.close();
    const reason = `ZMQ cannot connect to ${endpoint}: ${(cause as Error).message}`;
    throw new WarmpathError("WP_INVALID_INPUT", reason, { cause });
  }
}
