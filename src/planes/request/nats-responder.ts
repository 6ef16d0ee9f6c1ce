import type { Msg, NatsConnection, Subscription } from "@nats-io/transport-node";
import type { NatsLink } from "../nats/connection.ts";
import { requestSubjects } from "../nats/subjects.ts";
import { readControl, readRequestHead } from "./parts/nats-frames.ts";
import { ServedRequest } from "./nats-responder/served-request.ts";

export interface NatsResponderOptions {
  /** The connection; whoever made it closes it. */
  readonly link: NatsLink;
  /** Name of the worker, as gateways know it. */
  readonly name: string;
  /** Where the worker's own HTTP server is. */
  readonly targetUrl: string;
  /** Larger bodies are refused. */
  readonly maxBodyBytes: number;
  /** How often this worker gives a sign of life for each request it has. */
  readonly beatMs?: number;
  /** How long a gateway may give none before its requests are given up. */
  readonly silenceMs?: number;
  readonly nowMs?: () => number;
}

const DEFAULT_BEAT_MS = 1000;
const DEFAULT_SILENCE_MS = 5000;

/** The worker's end of the request plane over NATS: hands requests to the worker's own HTTP server and the answers back. */
export class NatsResponder {
  readonly #options: NatsResponderOptions;
  readonly #nowMs: () => number;
  readonly #serving = new Map<string, ServedRequest>();
  readonly #subscriptions: Subscription[] = [];
  readonly #stopWatching: () => void;
  readonly #beat: NodeJS.Timeout;

  constructor(options: NatsResponderOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? ((): number => performance.now());
    this.#stopWatching = options.link.watch({
      up: (connection, isFirst) => (isFirst ? this.#subscribe(connection) : undefined),
      // Whoever asked has given up too, and pieces may be lost.
      down: () => this.#abortAll(() => true),
    });
    this.#beat = setInterval(() => this.#giveSigns(), options.beatMs ?? DEFAULT_BEAT_MS);
    this.#beat.unref();
  }

  /** Takes no more requests; those under way are the HTTP server's to end. */
  close(): Promise<void> {
    if (this.#options.link.connection !== undefined) for (const one of this.#subscriptions) one.unsubscribe();
    this.#subscriptions.length = 0;
    return Promise.resolve();
  }

  /** Ends what is under way. */
  kill(): void {
    clearInterval(this.#beat);
    this.#stopWatching();
    this.#abortAll(() => true);
  }

  #subscribe(connection: NatsConnection): void {
    const { requests, control } = requestSubjects(this.#options.link.prefix, this.#options.name);
    this.#subscriptions.push(
      connection.subscribe(requests, { callback: (error, message) => void (error ?? this.#asked(message)) }),
      connection.subscribe(control, { callback: (error, message) => void (error ?? this.#told(message.string())) }),
    );
  }

  #asked({ reply, data }: Msg): void {
    if (reply === undefined || reply === "") return;
    const known = this.#serving.get(reply);
    if (known !== undefined) {
      known.more(data);
      return;
    }
    const { link, targetUrl, maxBodyBytes } = this.#options;
    const begun = readRequestHead(data);
    // What follows a request that was given up, or what nobody of ours has sent.
    if (begun === undefined) return;
    const served = new ServedRequest(begun.head, {
      targetUrl,
      maxBodyBytes,
      partBytes: () => link.partBytes,
      send: (kind, piece) => link.connection?.publish(`${reply}.${kind}`, piece),
      over: () => this.#serving.delete(reply),
      nowMs: this.#nowMs,
    });
    this.#serving.set(reply, served);
    served.more(begun.rest);
  }

  #told(text: string): void {
    const { verb, subject } = readControl(text) ?? {};
    if (subject === undefined) return;
    if (verb === "alive") {
      const nowMs = this.#nowMs();
      for (const [reply, served] of this.#serving) if (reply.startsWith(`${subject}.`)) served.heardMs = nowMs;
      return;
    }
    const served = this.#serving.get(subject);
    if (verb === "pause") served?.pause();
    else if (verb === "resume") served?.resume();
    else served?.abort();
  }

  #giveSigns(): void {
    const { link, silenceMs = DEFAULT_SILENCE_MS } = this.#options;
    const nowMs = this.#nowMs();
    this.#abortAll(({ heardMs }) => nowMs - heardMs > silenceMs);
    for (const reply of this.#serving.keys()) link.connection?.publish(`${reply}.beat`);
  }

  #abortAll(which: (served: ServedRequest) => boolean): void {
    for (const served of this.#serving.values()) if (which(served)) served.abort();
  }
}
