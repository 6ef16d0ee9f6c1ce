import { once } from "node:events";
import { type IncomingMessage, type Server, type ServerResponse, createServer } from "node:http";
import { type AddressInfo, Server as NetServer } from "node:net";
import { WarmpathError } from "../../core/errors.ts";
import { createPolicy } from "../../core/policy/registry.ts";
import type { HttpMount } from "../../planes/http-mount/types.ts";
import { jsonOf } from "../../wire/body.ts";
import { encodeError } from "../../wire/openai-reply.ts";
import { field } from "../../wire/openai-usage.ts";
import { isFromForeignPage, isLoopback, namesThisMachine } from "../../wire/request-origin.ts";
import { splitTarget } from "../../wire/request-target.ts";
import type { BearerToken } from "../access/bearer-token.ts";
import type { LocalDecider } from "../local-decider.ts";
import type { PeerSharing } from "../peer-sharing.ts";
import type { Reloading } from "../reload.ts";
import { respondJson, respondWithAllowed, respondWithError } from "../openai-errors.ts";
import { readBody } from "../request-body.ts";
import {
  type AdminSources,
  decisionSummary,
  explainedDecision,
  indexView,
  peersView,
  policyView,
  workersView,
} from "./views.ts";

export interface AdminServerOptions {
  readonly decider: LocalDecider;
  /** Others who answer paths of this listener; they are asked first. */
  readonly mounts?: readonly HttpMount[];
  /** The settings the gateway runs with, to be shown. */
  readonly settings?: () => object;
  /** Who reads the settings again, where somebody can. */
  readonly reloading?: Reloading | undefined;
  /** What is known of other gateways before the same fleet, where they tell each other. */
  readonly peers?: Pick<PeerSharing, "name" | "peers" | "counts"> | undefined;
  /** What every request must bring; without it whoever reaches the listener is served. */
  readonly token?: BearerToken | undefined;
}

type Handler = (match: readonly string[], request: IncomingMessage, query: URLSearchParams) => Answer | Promise<Answer>;

interface Answer {
  readonly status?: number;
  readonly body: object;
}

const MAX_BODY_BYTES = 64 * 1024;
const POLICY_FIELDS: ReadonlySet<string> = new Set(["policy", "parameters"]);
const DEFAULT_DECISIONS = 50;
const MOST_DECISIONS = 1000;
const READING: ReadonlySet<string | undefined> = new Set(["GET", "HEAD"]);

/**
 * The operators' side of the gateway, on a listener of its own: what is known of workers, index and decisions, and the few
 * things that may be changed while it runs. Whoever reaches it may change them, so it listens on this machine alone unless
 * there is a token to ask for.
 */
export class AdminServer {
  readonly #options: AdminServerOptions;
  readonly #sources: AdminSources;
  readonly #server: Server;
  readonly #routes: readonly (readonly [method: string, path: RegExp, handler: Handler])[];
  #isRetired = false;
  #isOnThisMachineAlone = false;

  constructor(options: AdminServerOptions) {
    this.#options = options;
    const { decider } = options;
    this.#sources = decider;
    this.#routes = [
      ["GET", /^\/admin\/workers$/, () => ({ body: { workers: workersView(this.#sources) } })],
      ["GET", /^\/admin\/workers\/([^/]+)$/, ([name]) => this.#worker(name)],
      ["POST", /^\/admin\/workers\/([^/]+)\/drain$/, ([name]) => this.#setDraining(name, true)],
      ["POST", /^\/admin\/workers\/([^/]+)\/undrain$/, ([name]) => this.#setDraining(name, false)],
      ["GET", /^\/admin\/index$/, () => ({ body: indexView(this.#sources) })],
      ["GET", /^\/admin\/decisions$/, (_match, _request, query) => this.#decisions(query)],
      ["GET", /^\/admin\/decisions\/(\d+)$/, ([decision]) => this.#decision(Number(decision))],
      ["GET", /^\/admin\/policy$/, () => ({ body: policyView(this.#sources) })],
      ["PUT", /^\/admin\/policy$/, (_match, request) => this.#setPolicy(request)],
      ["GET", /^\/admin\/accounts$/, () => ({ body: { ...decider.accounting, queued: decider.router.queued } })],
      ["GET", /^\/admin\/settings$/, () => ({ body: options.settings?.() ?? {} })],
      ["GET", /^\/admin\/peers$/, () => ({ body: peersView(options.peers) })],
      ["GET", /^\/admin\/reload$/, () => ({ body: { last: options.reloading?.last ?? null } })],
      ["POST", /^\/admin\/reload$/, () => this.#reload()],
    ];
    this.#server = createServer((request, response) => {
      this.#serve(request, response).catch((error: unknown) => complain(response, error));
    });
  }

  /** Starts to serve and returns the address; port 0 takes any free one. */
  async listen(port = 0, host = "127.0.0.1"): Promise<string> {
    this.#server.listen(port, host);
    await once(this.#server, "listening");
    this.#isOnThisMachineAlone = isLoopback(host);
    const shown = host.includes(":") ? `[${host}]` : host;
    return `http://${shown}:${(this.#server.address() as AddressInfo).port}`;
  }

  /** A successor listens here now: whoever is still connected to this one is sent there. */
  retire(): void {
    this.#isRetired = true;
    NetServer.prototype.close.call(this.#server);
  }

  async close(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, "close");
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (this.#isRetired) {
      response.writeHead(307, { location: request.url ?? "/", connection: "close" }).end();
      return;
    }
    const { token } = this.#options;
    if (token !== undefined && !token.isIn(request.headers.authorization)) {
      response.setHeader("connection", "close").setHeader("www-authenticate", "Bearer");
      respondWithError(response, "invalid_admin_token", "send the admin token as Authorization: Bearer TOKEN");
      return;
    }
    // Who has the token is who they say; who reaches this machine without one may be any page in a browser on it.
    const intruder = token === undefined ? this.#intruderIn(request) : undefined;
    if (intruder !== undefined) {
      response.setHeader("connection", "close");
      const fields = { message: intruder, type: "invalid_request_error", code: "foreign_page" };
      respondJson(response, 403, encodeError(fields));
      return;
    }
    for (const mount of this.#options.mounts ?? []) if (mount.handle(request, response)) return;
    const [requested, query] = splitTarget(request.url);
    if (requested === "/metrics") {
      const text = await this.#options.decider.metricsText();
      response.writeHead(200, { "content-type": "text/plain; version=0.0.4; charset=utf-8" }).end(text);
      return;
    }
    const methods: string[] = [];
    for (const [method, path, handler] of this.#routes) {
      const match = path.exec(requested);
      if (match === null) continue;
      methods.push(method);
      if (method !== request.method) continue;
      const { status = 200, body } = await handler(match.slice(1).map(decoded), request, query);
      respondJson(response, status, JSON.stringify(body));
      return;
    }
    if (methods.length > 0) respondWithAllowed(response, requested, methods);
    else respondWithError(response, "not_found", `nothing is served at ${request.method} ${requested}`);
  }

  /** Why a request is none of an operator's; undefined if it may be. */
  #intruderIn({ method, headers }: IncomingMessage): string | undefined {
    if (this.#isOnThisMachineAlone && !namesThisMachine(headers)) {
      return `${headers.host} is no name of this machine; ask for localhost, or give the gateway an admin token`;
    }
    if (READING.has(method) || !isFromForeignPage(headers)) return undefined;
    return `orders are not taken from the page of ${headers.origin ?? "another site"}`;
  }

  async #reload(): Promise<Answer> {
    const { reloading } = this.#options;
    if (reloading === undefined) throw invalid("the settings of this gateway cannot be read again");
    const outcome = await reloading.reload();
    return { status: outcome.isApplied ? 200 : 409, body: outcome };
  }

  #worker(name: string): Answer {
    const workers = workersView(this.#sources).filter(
      (worker) => field(worker, "name") === name || field(worker, "worker") === name,
    );
    if (workers.length === 0) throw unknownWorker(name);
    return { body: { workers } };
  }

  #setDraining(name: string, isDraining: boolean): Answer {
    const { fleet } = this.#sources;
    if (fleet.workers.every(({ worker }) => worker.name !== name)) throw unknownWorker(name);
    if (isDraining) fleet.drain(name);
    else fleet.undrain(name);
    return this.#worker(name);
  }

  #decisions(query: URLSearchParams): Answer {
    const { log } = this.#sources.router;
    const request = query.get("request");
    const wanted = Number(query.get("limit") ?? DEFAULT_DECISIONS);
    if (!Number.isInteger(wanted) || wanted < 1 || wanted > MOST_DECISIONS) {
      throw invalid(`limit must be a whole number from 1 to ${MOST_DECISIONS}, got "${query.get("limit")}"`);
    }
    const records = request === null ? log.latest(wanted) : log.attempts(request);
    return { body: { decisions: records.map((record) => decisionSummary(record)) } };
  }

  #decision(decision: number): Answer {
    const record = this.#sources.router.log.get(decision);
    if (record !== undefined) return { body: explainedDecision(this.#sources, record) };
    const error = { message: `decision ${decision} is not kept, or was never made`, code: "not_found" };
    return { status: 404, body: { error } };
  }

  async #setPolicy(request: IncomingMessage): Promise<Answer> {
    const read = await readBody(request, MAX_BODY_BYTES);
    if (read.kind === "too-large") throw invalid(`the body has more than ${MAX_BODY_BYTES} bytes`);
    const body = read.kind === "read" ? jsonOf(read.bytes) : undefined;
    if (typeof body !== "object" || body === null || Array.isArray(body)) {
      throw invalid('the body must be JSON of the form {"policy": "NAME", "parameters": {…}}');
    }
    // A misspelt field would change nothing and look as if it had.
    const unknown = Object.keys(body).find((name) => !POLICY_FIELDS.has(name));
    if (unknown !== undefined) throw invalid(`${JSON.stringify(unknown)} is none of ${[...POLICY_FIELDS].join(", ")}`);
    const { router } = this.#sources;
    const name = field(body, "policy") ?? router.policy.name;
    const given = field(body, "parameters") ?? {};
    if (typeof name !== "string") throw invalid("policy must be the name of a policy");
    if (typeof given !== "object" || given === null || Array.isArray(given)) {
      throw invalid("parameters must be an object");
    }
    // Knobs of the same policy are changed one by one; another policy starts from its own defaults.
    const kept = name === router.policy.name ? router.policy.parameters : {};
    this.#options.decider.setPolicy(createPolicy(name, { ...kept, ...given }));
    const { name: policy, parameters } = router.policy;
    return { body: { policy, parameters } };
  }
}

function invalid(message: string): WarmpathError {
  return new WarmpathError("WP_INVALID_INPUT", message);
}

/** A part of a path as it was meant. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw invalid(`${JSON.stringify(part)} in the path is not percent-encoded UTF-8`);
  }
}

function unknownWorker(name: string): WarmpathError {
  return new WarmpathError("WP_UNKNOWN_REPLICA", `no worker is named ${JSON.stringify(name)}`);
}

function complain(response: ServerResponse, error: unknown): void {
  if (!WarmpathError.isInstance(error)) {
    respondWithError(response, "internal_error", error instanceof Error ? error.message : String(error));
  } else {
    const code = error.code === "WP_UNKNOWN_REPLICA" ? "not_found" : "invalid_request";
    respondWithError(response, code, error.message);
  }
}
