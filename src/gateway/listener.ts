import { type RequestListener, type Server, type ServerResponse, createServer } from "node:http";
import { type Server as SecureServer, createServer as createSecureServer } from "node:https";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { encodeError } from "../wire/openai-reply.ts";
import type { GatewayLimits } from "./limits.ts";
import { type GatewayErrorCode, errorFields, respondWithError, statusOf } from "./openai-errors.ts";
import { RequestOrder } from "./request-order.ts";

/** A certificate with its chain and its key, both in PEM. */
export interface TlsIdentity {
  readonly cert: string;
  readonly key: string;
}

export interface ListenerOptions {
  readonly limits: GatewayLimits;
  /** Serves HTTPS with it, and nothing else. */
  readonly tls?: TlsIdentity | undefined;
  readonly serve: RequestListener;
  /** Told of what was turned away before it became a request. */
  readonly rejected: (code: GatewayErrorCode | "too_many_connections") => void;
}

const MAX_HEADER_BYTES = 16 * 1024;
/** How often slow connections are looked for. */
const SLOW_CHECK_MS = 1000;
/**
 * Longer than clients and load balancers keep a connection without using it: if the gateway closes it first, a request that is
 * already on its way is lost, and its client cannot know whether it was served.
 */
const KEEP_ALIVE_MS = 75_000;
const OLDEST_TLS = "TLSv1.2";

/**
 * An HTTP or HTTPS server that bounds what a client can hold by doing nothing: how long headers and bodies may take to
 * arrive, how large headers may be, how many connections there are. What breaks a bound is answered in OpenAI's shape.
 */
export function createListener({ limits, tls, serve, rejected }: ListenerOptions): Server {
  const { headerMs, requestMs, maxConnections } = limits;
  const bounds = {
    headersTimeout: headerMs,
    requestTimeout: Math.max(headerMs, requestMs),
    connectionsCheckingInterval: Math.min(SLOW_CHECK_MS, headerMs),
    maxHeaderSize: MAX_HEADER_BYTES,
    keepAliveTimeout: KEEP_ALIVE_MS,
  };
  const server =
    tls === undefined
      ? createServer(bounds)
      : // All that is used of it here is what it has in common with a plain one.
        (createSecureServer({
          ...bounds,
          ...tls,
          minVersion: OLDEST_TLS,
          handshakeTimeout: headerMs,
        }) as unknown as Server);
  server.maxConnections = maxConnections;
  server.on("drop", () => rejected("too_many_connections"));
  boundPerAddress(server, limits.maxConnectionsPerAddress, rejected);
  const order = new RequestOrder(serve);
  const taken: RequestListener = (request, response) => order.take(request, response);
  server.on("request", taken);
  // Whoever asks before sending is told to go on when the body is wanted, and not before.
  server.on("checkContinue", taken);
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    const code = codeOf(error);
    // A client that has left has not broken any rule.
    if (code === undefined || !socket.writable) socket.destroy();
    else {
      rejected(code);
      const served = order.servedOn(socket);
      if (code === "request_timed_out" && isBeingAnswered(served)) order.endBeforeNewest(socket as Socket, served);
      else refuse(socket, served, code);
    }
  });
  return server;
}

/** Whether an answer is being given to a request that has arrived. */
function isBeingAnswered(response: ServerResponse | undefined): response is ServerResponse {
  return response !== undefined && !response.writableFinished && response.req.complete;
}

/** Another certificate for connections from now on. */
export function renewIdentity(server: Server, tls: TlsIdentity): void {
  (server as unknown as SecureServer).setSecureContext({ ...tls, minVersion: OLDEST_TLS });
}

function codeOf({ code }: NodeJS.ErrnoException): GatewayErrorCode | undefined {
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") return "request_timed_out";
  if (code === "HPE_HEADER_OVERFLOW") return "headers_too_large";
  const hasLeft = code === "HPE_INVALID_EOF_STATE";
  return code?.startsWith("HPE_") === true && !hasLeft ? "invalid_http" : undefined;
}

const MESSAGES: Partial<Readonly<Record<GatewayErrorCode, string>>> = {
  request_timed_out: "the request took too long to arrive",
  headers_too_large: `the headers have more than ${MAX_HEADER_BYTES} bytes`,
  invalid_http: "this is not HTTP/1.1",
};

/** Answers on a connection that is of no further use; an answer that has begun must not be followed by another. */
function refuse(socket: Duplex, response: ServerResponse | undefined, code: GatewayErrorCode): void {
  const message = MESSAGES[code] ?? code;
  if (response !== undefined && !response.writableFinished) {
    if (response.headersSent) socket.destroy();
    else {
      response.setHeader("connection", "close");
      respondWithError(response, code, message);
      response.on("finish", () => socket.destroy());
    }
    return;
  }
  const body = encodeError(errorFields(code, message));
  const head = [
    `HTTP/1.1 ${statusOf(code)} Refused`,
    "connection: close",
    "content-type: application/json",
    `content-length: ${Buffer.byteLength(body)}`,
  ];
  socket.end(`${head.join("\r\n")}\r\n\r\n${body}`, () => socket.destroy());
}

function boundPerAddress(server: Server, most: number | undefined, rejected: ListenerOptions["rejected"]): void {
  if (most === undefined) return;
  const counts = new Map<string, number>();
  server.on("connection", (socket) => {
    const address = socket.remoteAddress ?? "";
    const count = (counts.get(address) ?? 0) + 1;
    if (count > most) {
      rejected("too_many_connections");
      socket.destroy();
      return;
    }
    counts.set(address, count);
    socket.on("close", () => {
      const left = (counts.get(address) ?? 1) - 1;
      if (left === 0) counts.delete(address);
      else counts.set(address, left);
    });
  });
}
