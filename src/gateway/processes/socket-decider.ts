import { randomUUID } from "node:crypto";
import { type Socket, connect } from "node:net";
import type { Accounting } from "../../core/accounts.ts";
import type { ShedReason } from "../../core/admission/types.ts";
import type {
  AttemptEnd,
  DecidedRequest,
  Decider,
  NotRetried,
  OfferedRequest,
  Placement,
  Readiness,
} from "../decider.ts";
import { FRAME, FrameReader, FrameWriter } from "./frames.ts";
import { type FleetNews, type StandInReport, encodeOffer, writableEnd } from "./messages.ts";

export interface SocketDeciderOptions {
  readonly path: string;
  /** Connected, lost, or heard of the fleet. */
  readonly changed?: (decider: SocketDecider) => void;
}

const RECONNECT_MS = 100;
/** A decider that is silent for so long is as good as gone. */
const SILENCE_MS = 2000;
/** Growth is additive, so it may wait a little and go out in one frame per request. */
const GROWTH_MS = 10;

const NO_NEWS: FleetNews = {
  workers: [],
  models: [],
  adapters: [],
  readiness: { decider: "fallback", policy: "", workers: { ready: 0, total: 0 }, index: {} },
};

/** The decider of another process, behind a local socket; connects again whenever it is lost. */
export class SocketDecider implements Decider {
  readonly #options: SocketDeciderOptions;
  readonly #name = randomUUID();
  readonly #slots = new Map<string, number>();
  readonly #open = new Map<number, { readonly id: string; readonly decided: DecidedRequest }>();
  readonly #growth = new Map<number, number>();
  readonly #metrics = new Map<number, (text: string) => void>();
  readonly #watchdog: NodeJS.Timeout;
  #socket: Socket | undefined;
  #writer = new FrameWriter();
  #isConnected = false;
  #isClosed = false;
  #isFlushing = false;
  #growthTimer: NodeJS.Timeout | undefined;
  #heardMs = 0;
  #news: FleetNews = NO_NEWS;
  #hasNews = false;
  #nextSlot = 1;

  constructor(options: SocketDeciderOptions) {
    this.#options = options;
    this.#watchdog = setInterval(() => this.#checkSilence(), SILENCE_MS / 4);
    this.#watchdog.unref();
    this.#connect();
  }

  /** Whether it is there and has told of its fleet. */
  get isPresent(): boolean {
    return this.#isConnected && this.#hasNews;
  }

  /** What was last heard of the fleet. */
  get news(): FleetNews {
    return this.#news;
  }

  offer(request: OfferedRequest, decided: DecidedRequest): void {
    const slot = this.#nextSlot++ >>> 0;
    this.#slots.set(request.id, slot);
    this.#open.set(slot, { id: request.id, decided });
    const { head, hashes } = encodeOffer(request);
    this.#writer.add(FRAME.offer, slot, head, hashes);
    this.#flush();
  }

  sent(id: string): void {
    this.#signal(FRAME.sent, id);
  }

  firstToken(id: string): void {
    this.#signal(FRAME.firstToken, id);
  }

  grew(id: string, tokens: number): void {
    const slot = this.#slots.get(id);
    if (slot === undefined) return;
    this.#growth.set(slot, (this.#growth.get(slot) ?? 0) + tokens);
    this.#growthTimer ??= setTimeout(() => this.#sendGrowth(), GROWTH_MS);
  }

  ended(id: string, end: AttemptEnd): void {
    const slot = this.#slots.get(id);
    if (slot === undefined) return;
    const grown = this.#growth.get(slot);
    this.#growth.delete(slot);
    if (grown !== undefined) this.#writer.addNumber(FRAME.grew, slot, grown);
    this.#writer.addJson(FRAME.ended, slot, writableEnd(end));
    this.#flush();
  }

  refused(reason: string, key?: string): void {
    this.#writer.addJson(FRAME.refused, 0, { reason, key });
    this.#flush();
  }

  invalid(code: string): void {
    this.#writer.add(FRAME.invalid, 0, Buffer.from(code));
    this.#flush();
  }

  /** Tells what was done without the decider; the numbers are since the start of this process. */
  reportStandIn(accounting: Accounting): void {
    this.#writer.addJson(FRAME.standIn, 0, { proxy: this.#name, accounting } satisfies StandInReport);
    this.#flush();
  }

  models(): readonly string[] {
    return this.#news.models;
  }

  adapters(): readonly string[] {
    return this.#news.adapters;
  }

  readiness(): Readiness {
    return this.#news.readiness;
  }

  /** The decider's metrics; nothing if it is lost meanwhile. */
  metricsText(): Promise<string> {
    if (!this.#isConnected) return Promise.resolve("");
    const slot = this.#nextSlot++ >>> 0;
    this.#writer.add(FRAME.metrics, slot);
    this.#flush();
    return new Promise((resolve) => this.#metrics.set(slot, resolve));
  }

  close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#watchdog);
    clearTimeout(this.#growthTimer);
    return new Promise((resolve) => {
      if (this.#socket === undefined || this.#socket.destroyed) resolve();
      else this.#socket.once("close", () => resolve()).end();
    });
  }

  #connect(): void {
    if (this.#isClosed) return;
    const socket = connect(this.#options.path);
    this.#socket = socket;
    const reader = new FrameReader((kind, slot, payload) => this.#read(kind, slot, payload));
    socket.on("connect", () => {
      this.#isConnected = true;
      this.#heardMs = performance.now();
      this.#hasNews = false;
    });
    socket.on("data", (chunk) => {
      this.#heardMs = performance.now();
      reader.push(chunk);
    });
    socket.on("error", () => {});
    socket.on("close", () => this.#lost());
  }

  #lost(): void {
    const wasConnected = this.#isConnected;
    this.#isConnected = false;
    this.#writer = new FrameWriter();
    this.#slots.clear();
    this.#open.clear();
    this.#growth.clear();
    for (const answer of this.#metrics.values()) answer("");
    this.#metrics.clear();
    if (this.#isClosed) return;
    if (wasConnected) this.#options.changed?.(this);
    setTimeout(() => this.#connect(), RECONNECT_MS).unref();
  }

  #checkSilence(): void {
    if (this.#isConnected && performance.now() - this.#heardMs > SILENCE_MS) this.#socket?.destroy();
  }

  #read(kind: number, slot: number, payload: Buffer): void {
    switch (kind) {
      case FRAME.place:
        this.#open.get(slot)?.decided.place(JSON.parse(payload.toString()) as Placement);
        break;
      case FRAME.shed:
        this.#take(slot)?.shed(JSON.parse(payload.toString()) as ShedReason);
        break;
      case FRAME.over:
        this.#take(slot)?.over(payload.length === 0 ? undefined : (payload.toString() as NotRetried));
        break;
      case FRAME.fleet:
        this.#news = JSON.parse(payload.toString()) as FleetNews;
        this.#hasNews = true;
        this.#options.changed?.(this);
        break;
      case FRAME.metricsText:
        this.#metrics.get(slot)?.(payload.toString());
        this.#metrics.delete(slot);
        break;
    }
  }

  #take(slot: number): DecidedRequest | undefined {
    const open = this.#open.get(slot);
    this.#open.delete(slot);
    if (open !== undefined) this.#slots.delete(open.id);
    return open?.decided;
  }

  #signal(kind: typeof FRAME.sent | typeof FRAME.firstToken, id: string): void {
    const slot = this.#slots.get(id);
    if (slot === undefined) return;
    this.#writer.add(kind, slot);
    this.#flush();
  }

  #sendGrowth(): void {
    this.#growthTimer = undefined;
    for (const [slot, tokens] of this.#growth) this.#writer.addNumber(FRAME.grew, slot, tokens);
    this.#growth.clear();
    this.#flush();
  }

  /** One write for all that happens in one go. */
  #flush(): void {
    if (this.#isFlushing) return;
    this.#isFlushing = true;
    queueMicrotask(() => {
      this.#isFlushing = false;
      if (this.#isConnected && !this.#writer.isEmpty) this.#socket?.write(this.#writer.take());
    });
  }
}
