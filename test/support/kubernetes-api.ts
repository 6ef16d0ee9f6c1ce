import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo } from "node:net";

/** What every object has; the rest is the test's. */
export interface KubernetesObject {
  readonly metadata: {
    readonly name: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly [key: string]: unknown;
  };
  readonly [key: string]: unknown;
}

export interface KubernetesApiOptions {
  /** Speaks TLS with these. */
  readonly tls?: { readonly key: string; readonly cert: string };
  /** Asks for this bearer token. */
  readonly token?: () => string;
  /** Objects in a page at most, whatever the client's limit. */
  readonly pageObjects?: number;
}

interface Happening {
  readonly version: number;
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly object: KubernetesObject;
  /** What it was before; a selector may have matched that and not this. */
  readonly before: KubernetesObject | undefined;
}

interface Watch {
  readonly selector: string;
  readonly response: ServerResponse;
}

interface Kind {
  readonly objects: Map<string, KubernetesObject>;
  readonly happenings: Happening[];
  readonly watches: Set<Watch>;
}

const GONE = { code: 410, reason: "Expired", message: "too old resource version" };

/**
 * A Kubernetes API server for one test: lists in pages, watches that resume, bookmarks, versions that expire, refusals as
 * `Status` objects. It knows nothing of kinds; a collection is whatever path was put there.
 */
export class KubernetesApi {
  readonly #options: KubernetesApiOptions;
  readonly #kinds = new Map<string, Kind>();
  readonly #server: Server;
  /** Counts all changes to all objects, as etcd does. */
  #version = 100;
  /** Everything before it is forgotten. */
  #oldestVersion = 0;
  /** Answers everything with this status. */
  brokenWith: number | undefined;
  /** What was asked, as path and parameters. */
  readonly asked: URL[] = [];

  constructor(options: KubernetesApiOptions = {}) {
    this.#options = options;
    const answer = (request: IncomingMessage, response: ServerResponse): void => this.#answer(request, response);
    this.#server = options.tls === undefined ? createServer(answer) : createSecureServer(options.tls, answer);
  }

  async listen(): Promise<string> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    const scheme = this.#options.tls === undefined ? "http" : "https";
    return `${scheme}://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    if (this.#server.listening) await once(this.#server, "close");
  }

  /** Creates an object or replaces the one of its name. */
  put(path: string, object: KubernetesObject): void {
    const { objects } = this.#kind(path);
    const type = objects.has(object.metadata.name) ? "MODIFIED" : "ADDED";
    this.#happen(path, type, object);
  }

  delete(path: string, name: string): void {
    const object = this.#kind(path).objects.get(name);
    if (object !== undefined) this.#happen(path, "DELETED", object);
  }

  /** Makes these all the objects of a collection, telling only what differs. */
  replace(path: string, objects: readonly KubernetesObject[]): void {
    const { objects: before } = this.#kind(path);
    for (const name of before.keys()) {
      if (!objects.some(({ metadata }) => metadata.name === name)) this.delete(path, name);
    }
    for (const object of objects) {
      const { resourceVersion: _version, ...metadata } = before.get(object.metadata.name)?.metadata ?? { name: "" };
      const known = JSON.stringify({ ...before.get(object.metadata.name), metadata });
      if (known !== JSON.stringify(object)) this.put(path, object);
    }
  }

  /** Tells watchers how far they are. */
  bookmark(): void {
    this.#version += 1;
    const object = { metadata: { resourceVersion: String(this.#version) } };
    this.#toAll((watch) => write(watch, "BOOKMARK", object));
  }

  /** Resolves when somebody watches a collection. */
  async watched(path: string): Promise<void> {
    while (this.#kind(path).watches.size === 0) await once(this.#server, "request");
  }

  /** Ends all watches, as a server does every few minutes and whenever it restarts. */
  endWatches(): void {
    this.#endAll(({ response }) => response.end());
  }

  /** Cuts all watches off in the middle of a line. */
  cutWatches(): void {
    this.#endAll(({ response }) => {
      response.write('{"type":"ADDED","object":{"metadata":{"na');
      response.destroy();
    });
  }

  /** Forgets what happened before now, as compaction does, and tells those who watch. */
  compact(): void {
    this.#oldestVersion = this.#version + 1;
    this.#version += 1;
    this.#endAll((watch) => {
      write(watch, "ERROR", { kind: "Status", status: "Failure", ...GONE });
      watch.response.end();
    });
  }

  /** As compaction, found out only by whoever comes back. */
  forget(): void {
    this.#version += 1;
    this.#oldestVersion = this.#version;
  }

  #happen(path: string, type: Happening["type"], given: KubernetesObject): void {
    const { objects, happenings, watches } = this.#kind(path);
    this.#version += 1;
    const object = { ...given, metadata: { ...given.metadata, resourceVersion: String(this.#version) } };
    const before = objects.get(object.metadata.name);
    if (type === "DELETED") objects.delete(object.metadata.name);
    else objects.set(object.metadata.name, object);
    const happening = { version: this.#version, type, object, before };
    happenings.push(happening);
    for (const watch of watches) tell(watch, happening);
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? "/", "http://server");
    this.asked.push(url);
    const { brokenWith } = this;
    if (brokenWith !== undefined) return refuse(response, brokenWith, "the server is unwell");
    const token = this.#options.token?.();
    if (token !== undefined && request.headers.authorization !== `Bearer ${token}`) {
      return refuse(response, 401, "Unauthorized");
    }
    if (!/^\/(api|apis\/[^/]+)\/v\d+\/namespaces\/[^/]+\/[a-z]+$/.test(url.pathname)) {
      return refuse(response, 404, "the server could not find the requested resource");
    }
    if (url.searchParams.get("watch") === "1") this.#watch(url, response);
    else this.#list(url, response);
  }

  #list({ pathname, searchParams }: URL, response: ServerResponse): void {
    const selector = searchParams.get("labelSelector") ?? "";
    const [version = String(this.#version), start = "0"] = searchParams.get("continue")?.split("/") ?? [];
    if (Number(version) < this.#oldestVersion) return refuse(response, GONE.code, GONE.message);
    const limit = Math.min(Number(searchParams.get("limit") ?? Infinity), this.#options.pageObjects ?? Infinity);
    const objects = [...this.#kind(pathname).objects.values()].filter((object) => matches(object, selector));
    const end = Number(start) + limit;
    const metadata = {
      resourceVersion: version,
      ...(end < objects.length && { continue: `${version}/${end}` }),
    };
    const items = objects.slice(Number(start), end);
    response.writeHead(200, { "content-type": "application/json" });
    // As a Go server has it: an empty list is null.
    response.end(JSON.stringify({ kind: "List", metadata, items: items.length === 0 ? null : items }));
  }

  #watch({ pathname, searchParams }: URL, response: ServerResponse): void {
    const from = Number(searchParams.get("resourceVersion"));
    if (from < this.#oldestVersion) return refuse(response, GONE.code, GONE.message);
    const { happenings, watches } = this.#kind(pathname);
    const watch: Watch = { selector: searchParams.get("labelSelector") ?? "", response };
    response.writeHead(200, { "content-type": "application/json", "transfer-encoding": "chunked" });
    response.flushHeaders();
    for (const happening of happenings) if (happening.version > from) tell(watch, happening);
    watches.add(watch);
    response.on("close", () => watches.delete(watch));
  }

  #kind(path: string): Kind {
    const known = this.#kinds.get(path);
    if (known !== undefined) return known;
    const kind: Kind = { objects: new Map(), happenings: [], watches: new Set() };
    this.#kinds.set(path, kind);
    return kind;
  }

  #toAll(what: (watch: Watch) => void): void {
    for (const { watches } of this.#kinds.values()) for (const watch of watches) what(watch);
  }

  #endAll(how: (watch: Watch) => void): void {
    this.#toAll(how);
    for (const { watches } of this.#kinds.values()) watches.clear();
  }
}

/** Under a selector an object comes and goes with its labels. */
function tell(watch: Watch, { type, object, before }: Happening): void {
  const is = type !== "DELETED" && matches(object, watch.selector);
  const was = before !== undefined && matches(before, watch.selector);
  if (is) write(watch, was ? "MODIFIED" : "ADDED", object);
  else if (was) write(watch, "DELETED", object);
}

/** In two pieces: a client must not take a chunk for a line. */
function write({ response }: Watch, type: string, object: object): void {
  const line = `${JSON.stringify({ type, object })}\n`;
  const middle = Math.floor(line.length / 2);
  response.write(line.slice(0, middle));
  response.write(line.slice(middle));
}

function refuse(response: ServerResponse, code: number, message: string): void {
  response.writeHead(code, { "content-type": "application/json" });
  response.end(JSON.stringify({ kind: "Status", apiVersion: "v1", status: "Failure", code, message }));
}

/** Selectors of the form `a=b,c=d`. */
function matches({ metadata }: KubernetesObject, selector: string): boolean {
  const wanted = selector.split(",").filter((part) => part !== "");
  return wanted.every((part) => {
    const [key, value] = part.split("=");
    return metadata.labels?.[key] === value;
  });
}
