import { once } from "node:events";
import { type IncomingMessage, type Server, type ServerResponse, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { WarmpathError } from "../core/errors.ts";
import { collectBody, jsonOf } from "../wire/body.ts";
import { isFromForeignPage, isLoopback, namesThisMachine } from "../wire/request-origin.ts";
import { readCommand } from "./commands.ts";
import type { LiveFeed } from "./feed.ts";
import { COMMAND_PATH, type CommandReply, FEED_PATH } from "./protocol.ts";
import type { StaticFile } from "./static-files.ts";

export interface DashboardServerOptions {
  readonly feed: LiveFeed;
  readonly files: ReadonlyMap<string, StaticFile>;
  readonly intervalMs?: number;
}

const DEFAULT_INTERVAL_MS = 400;
const MAX_BODY_BYTES = 16 * 1024;
/** A page that reads this much too slowly is cut off; it comes back by itself and starts over. */
const MOST_UNSENT_BYTES = 4 * 1024 * 1024;
const RECONNECT_MS = 1000;

/** The page on its own: nothing may be loaded from elsewhere, and nobody may put it into a frame. */
const PAGE_HEADERS = {
  "content-security-policy":
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
};

/** Serves the page, its feed of server-sent events, and its commands. */
export class DashboardServer {
  readonly #options: DashboardServerOptions;
  readonly #server: Server;
  readonly #readers = new Set<ServerResponse>();
  #timer: NodeJS.Timeout | undefined;
  #isOnThisMachineAlone = false;

  constructor(options: DashboardServerOptions) {
    this.#options = options;
    this.#server = createServer((request, response) => {
      this.#serve(request, response).catch(() => response.destroy());
    });
  }

  /** Starts to serve and returns the address; port 0 takes any free one. */
  async listen(port = 0, host = "127.0.0.1"): Promise<string> {
    this.#server.listen(port, host);
    await once(this.#server, "listening");
    this.#isOnThisMachineAlone = isLoopback(host);
    this.#timer = setInterval(() => this.#tick(), this.#options.intervalMs ?? DEFAULT_INTERVAL_MS);
    const shown = host.includes(":") ? `[${host}]` : host;
    return `http://${shown}:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    if (!this.#server.listening) return;
    const closed = once(this.#server, "close");
    this.#server.close();
    for (const reader of this.#readers) reader.end();
    this.#server.closeAllConnections();
    await closed;
  }

  #tick(): void {
    const snapshot = this.#options.feed.tick();
    if (this.#readers.size === 0) return;
    const text = event("snapshot", snapshot);
    for (const reader of this.#readers) {
      if (reader.writableLength > MOST_UNSENT_BYTES) reader.destroy();
      else reader.write(text);
    }
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url?.split("?", 1)[0] ?? "/";
    // Whoever makes a name of their own point to this machine has pages whose origin is this server.
    if (this.#isOnThisMachineAlone && !namesThisMachine(request.headers)) {
      reply(response, 403, `${request.headers.host} is no name of this machine; ask for localhost`);
      return;
    }
    if (path === COMMAND_PATH) {
      await this.#command(request, response);
      return;
    }
    if (request.method !== "GET" && request.method !== "HEAD") reply(response, 405, `${path} takes GET`);
    else if (path === FEED_PATH) this.#stream(response);
    else this.#file(path, request, response);
  }

  #stream(response: ServerResponse): void {
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
    response.write(`retry: ${RECONNECT_MS}\n\n${event("hello", this.#options.feed.hello)}`);
    this.#readers.add(response);
    response.on("close", () => this.#readers.delete(response));
  }

  #file(path: string, request: IncomingMessage, response: ServerResponse): void {
    const file = this.#options.files.get(path);
    if (file === undefined) {
      reply(response, 404, `nothing is served at ${path}`);
      return;
    }
    const caching = file.isImmutable ? "public, max-age=31536000, immutable" : "no-cache";
    response.writeHead(200, { ...PAGE_HEADERS, "content-type": file.type, "cache-control": caching });
    response.end(request.method === "HEAD" ? undefined : file.bytes);
  }

  async #command(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== "POST") {
      reply(response, 405, `${COMMAND_PATH} takes POST`);
      return;
    }
    // A page of somebody else's must not steer this one: browsers send its origin, and ask before they send JSON.
    if (isFromForeignPage(request.headers) || request.headers["content-type"]?.split(";")[0] !== "application/json") {
      reply(response, 403, "commands come as JSON from the page itself");
      return;
    }
    const { bytes } = await collectBody(request, MAX_BODY_BYTES);
    try {
      await this.#options.feed.run(readCommand(bytes === undefined ? undefined : jsonOf(bytes)));
      send(response, 200, { ok: true });
    } catch (error) {
      const status = WarmpathError.isInstance(error) && error.code === "WP_INVALID_INPUT" ? 400 : 409;
      reply(response, status, error instanceof Error ? error.message : String(error));
    }
  }
}

function event(name: string, data: object): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}

function reply(response: ServerResponse, status: number, message: string): void {
  send(response, status, { ok: false, message });
}

function send(response: ServerResponse, status: number, body: CommandReply): void {
  response.writeHead(status, { "content-type": "application/json", "cache-control": "no-store" });
  response.end(JSON.stringify(body));
}
