import { setTimeout as pause } from "node:timers/promises";
import type { NatsConnection, NodeConnectionOptions } from "@nats-io/transport-node";
import { WarmpathError } from "../../core/errors.ts";

export interface NatsLinkOptions {
  /** `nats://host:4222` or `tls://host:4222`, with user and password or a token where the server wants them. */
  readonly url: string;
  /** First part of all subjects, so that several fleets can share a server. */
  readonly prefix?: string | undefined;
  /** How the server's own monitoring names this connection. */
  readonly name?: string;
  /** Pause before a lost connection is tried again. */
  readonly reconnectMs?: number;
}

/** Told when the server can be reached and when it no longer can. */
export interface LinkWatcher {
  /** Subscriptions made on the first call are still there on later ones. */
  up(connection: NatsConnection, isFirst: boolean): void;
  down?(): void;
}

type Connector = (options: NodeConnectionOptions) => Promise<NatsConnection>;

const DEFAULT_PREFIX = "warmpath";
/** What servers allow unless told otherwise. */
const DEFAULT_PAYLOAD_BYTES = 1024 * 1024;
/** Where one can choose: a larger message keeps others waiting for longer. */
const PART_BYTES = 512 * 1024;
const DEFAULT_RECONNECT_MS = 500;
const PREFIX = /^[A-Za-z0-9_-]+$/;

/**
 * One connection to a NATS server that may come late, go away and come back. Whoever uses it need not wait for it, and what
 * is published while it is down is nobody's: those who watch make up for it when it is up again.
 */
export class NatsLink {
  readonly prefix: string;
  readonly #options: NodeConnectionOptions;
  readonly #connect: Connector;
  readonly #reconnectMs: number;
  readonly #closing = new AbortController();
  readonly #watchers = new Set<LinkWatcher>();
  readonly #greeted = new WeakSet<LinkWatcher>();
  readonly #running: Promise<void>;
  #connection: NatsConnection | undefined;
  #isUp = false;

  private constructor(connect: Connector, options: NatsLinkOptions) {
    this.prefix = options.prefix ?? DEFAULT_PREFIX;
    if (!PREFIX.test(this.prefix)) {
      throw invalid(`the prefix of NATS subjects must be letters, digits, - and _; got ${JSON.stringify(this.prefix)}`);
    }
    this.#connect = connect;
    this.#reconnectMs = options.reconnectMs ?? DEFAULT_RECONNECT_MS;
    this.#options = {
      ...serverOf(options.url),
      ...(options.name !== undefined && { name: options.name }),
      maxReconnectAttempts: -1,
      reconnectTimeWait: this.#reconnectMs,
      reconnectJitter: this.#reconnectMs,
    };
    this.#running = this.#run();
  }

  /** Starts to connect; needs the optional packages of the NATS client. */
  static async load(options: NatsLinkOptions): Promise<NatsLink> {
    const { connect } = await import("@nats-io/transport-node").catch((cause: unknown) => {
      const advice = "NATS needs its client; npm install @nats-io/transport-node @nats-io/jetstream";
      throw new WarmpathError("WP_INVALID_INPUT", advice, { cause });
    });
    return new NatsLink(connect, options);
  }

  /** The connection while the server can be reached. */
  get connection(): NatsConnection | undefined {
    return this.#isUp ? this.#connection : undefined;
  }

  /** The largest message that the server takes. */
  get payloadBytes(): number {
    return this.#connection?.info?.max_payload ?? DEFAULT_PAYLOAD_BYTES;
  }

  /** The largest message to make of what can be cut into several. */
  get partBytes(): number {
    return Math.min(PART_BYTES, this.payloadBytes);
  }

  /** Tells of the connection from now on, and of one that is there already; until called off. */
  watch(watcher: LinkWatcher): () => void {
    this.#watchers.add(watcher);
    const { connection } = this;
    if (connection !== undefined) queueMicrotask(() => this.#greet(watcher, connection));
    return () => this.#watchers.delete(watcher);
  }

  /** Waits for the server for so long at most, and says whether it is there. */
  async reached(withinMs: number): Promise<boolean> {
    if (this.#isUp) return true;
    let forget = (): void => undefined;
    const isUp = new Promise<void>((resolve) => {
      forget = this.watch({ up: () => resolve() });
    });
    const patience = new AbortController();
    await Promise.race([isUp, pause(withinMs, undefined, { signal: patience.signal }).catch(() => undefined)]);
    patience.abort();
    forget();
    return this.#isUp;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#watchers.clear();
    await this.#connection?.close();
    await this.#running;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  get #isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  async #run(): Promise<void> {
    const connection = await this.#firstConnection();
    if (connection === undefined) return;
    this.#connection = connection;
    this.#setUp(connection);
    for await (const { type } of connection.status()) {
      if (type === "disconnect") this.#setDown();
      else if (type === "reconnect") this.#setUp(connection);
    }
    this.#setDown();
  }

  /** The client itself only connects again; that the server is not there yet is for us to bear. */
  async #firstConnection(): Promise<NatsConnection | undefined> {
    while (!this.#isClosed) {
      try {
        const connection = await this.#connect(this.#options);
        if (!this.#isClosed) return connection;
        await connection.close();
      } catch {
        await pause(this.#reconnectMs, undefined, { ref: false, signal: this.#closing.signal }).catch(() => undefined);
      }
    }
    return undefined;
  }

  #setUp(connection: NatsConnection): void {
    this.#isUp = true;
    for (const watcher of this.#watchers) this.#greet(watcher, connection);
  }

  #greet(watcher: LinkWatcher, connection: NatsConnection): void {
    if (!this.#isUp || !this.#watchers.has(watcher)) return;
    const isFirst = !this.#greeted.has(watcher);
    this.#greeted.add(watcher);
    watcher.up(connection, isFirst);
  }

  #setDown(): void {
    if (!this.#isUp) return;
    this.#isUp = false;
    for (const watcher of this.#watchers) watcher.down?.();
  }
}

function serverOf(url: string): NodeConnectionOptions {
  const { protocol, host, username, password } = URL.canParse(url) ? new URL(url) : { protocol: "" };
  if ((protocol !== "nats:" && protocol !== "tls:") || host === undefined || host === "") {
    throw invalid(
      `a NATS server must be nats://HOST:PORT or tls://HOST:PORT, got ${JSON.stringify(withoutSecret(url))}`,
    );
  }
  const [name, secret] = [username, password].map((part = "") => decodeURIComponent(part));
  return {
    servers: host,
    ...(protocol === "tls:" && { tls: {} }),
    ...(name !== "" && (secret === "" ? { token: name } : { user: name, pass: secret })),
  };
}

/** As it may be shown: whoever reads a log need not know the password. */
function withoutSecret(url: string): string {
  return url.replace(/\/\/[^@/]*@/, "//…@");
}

function invalid(message: string): WarmpathError {
  return new WarmpathError("WP_INVALID_INPUT", message);
}
