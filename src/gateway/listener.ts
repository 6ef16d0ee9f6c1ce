import { type RequestListener, type Server, type ServerResponse, createServer } from "node:http";
import { type Server as SecureServer, createServer as createSecureServer } from "node:https";
import type { Socket } from "node:net";
import { encodeError } from "../wire/openai-reply.ts";
import type { GatewayLimits } from "./limits.ts";
import { closeAfter, closeLingering, discard } from "./lingering-close.ts";
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
    // Asked for below, where what is missing is said.
    requireHostHeader: false,
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
  const order = new RequestOrder((request, response) => {
    if (request.headers.host !== undefined || request.httpVersion !== "1.1") serve(request, response);
    else {
      rejected("invalid_http");
      closeAfter(response);
      respondWithError(response, "invalid_http", "the request has no Host header");
    }
  });
  const taken: RequestListener = (request, response) => order.take(request, response);
  server.on("request", taken);
  // Whoever asks before sending is told to go on when the body is wanted, and not before.
  server.on("checkContinue", taken);
  // Whatever else is expected makes no difference; Node would refuse it, in a shape that is not OpenAI's, and tell nobody.
  server.on("checkExpectation", taken);
  server.on("clientError", (error: NodeJS.ErrnoException, duplex) => {
    const socket = duplex as Socket;
    const code = codeOf(error);
    // A client that has left has not broken any rule.
    if (code === undefined || !socket.writable) socket.destroy();
    else if (!order.isEnding(socket)) {
      rejected(code);
      const served = order.servedOn(socket);
      if (isBeingAnswered(served)) endAfterAnswers(order, socket, served, code);
      else refuse(socket, served, code);
    }
  });
  return server;
}

/** What came behind a request that is being answered does not cost that one its answer. */
function endAfterAnswers(order: RequestOrder, socket: Socket, served: ServerResponse, code: GatewayErrorCode): void {
  if (code === "request_timed_out") order.endBeforeNewest(socket, served, () => socket.destroySoon());
  else {
    order.endBeforeNewest(socket, served, () => refuseConnection(socket, code));
    // Still read, because that is how it is noticed that the client has left.
    discard(socket);
  }
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
function refuse(socket: Socket, response: ServerResponse | undefined, code: GatewayErrorCode): void {
  if (response === undefined || response.writableFinished) refuseConnection(socket, code);
  else if (response.headersSent) socket.destroy();
  else {
    closeAfter(response);
    // Whoever was waited for has had its time.
    if (code === "request_timed_out") response.on("finish", () => socket.destroy());
    respondWithError(response, code, MESSAGES[code] ?? code);
  }
}

/** Answers where no request is to be answered. */
function refuseConnection(socket: Socket, code: GatewayErrorCode): void {
  // Node closes a connection by itself after an answer that says so.
  if (!socket.writable) return;
  const body = encodeError(errorFields(code, MESSAGES[code] ?? code));
  const head = [
    `HTTP/1.1 ${statusOf(code)} Refused`,
    "connection: close",
    "content-type: application/json",
    `content-length: ${Buffer.byteLength(body)}`,
  ];
  const answer = `${head.join("\r\n")}\r\n\r\n${body}`;
  if (code === "request_timed_out") socket.end(answer, () => socket.destroy());
  else {
    socket.write(answer);
    closeLingering(socket);
  }
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
