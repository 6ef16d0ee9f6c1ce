import { Agent, type Dispatcher, request } from "undici";
import type { ClusterAccess } from "./cluster.ts";
import type { ApiObject, ApiStatus, ObjectList, WatchEvent } from "./objects.ts";

/** What was asked about is too old: only a new list helps. */
export class GoneError extends Error {}

/** A collection of one kind, and which of its objects are wanted. */
export interface Collection {
  readonly path: string;
  readonly labelSelector: string;
}

const PAGE_OBJECTS = 500;
const ANSWER_MS = 10_000;
/** Servers end a watch after this; one that is silent for longer has lost its connection. */
const WATCH_SECONDS = 60;
const SILENCE_MS = (WATCH_SECONDS + 10) * 1000;
const GONE = 410;

/** The two questions that are asked of a Kubernetes API server: what is there, and what has changed since. */
export class ApiClient<T extends ApiObject> {
  readonly #access: ClusterAccess;
  #agent: Agent | undefined;
  #authority: string | undefined;

  constructor(access: ClusterAccess) {
    this.#access = access;
  }

  /** All objects of a collection, and the version from which to watch it. */
  async list(collection: Collection, signal: AbortSignal): Promise<{ objects: T[]; resourceVersion: string }> {
    const objects: T[] = [];
    let next: string | undefined;
    for (;;) {
      const page = next === undefined ? {} : { continue: next };
      const answer = await this.#get(collection, { limit: String(PAGE_OBJECTS), ...page }, signal);
      const { metadata, items } = (await answer.json()) as ObjectList<T>;
      objects.push(...(items ?? []));
      next = metadata.continue;
      if (next === undefined || next === "") return { objects, resourceVersion: metadata.resourceVersion };
    }
  }

  /** What happens to a collection after a version, until the server ends it. */
  async *watch(collection: Collection, resourceVersion: string, signal: AbortSignal): AsyncGenerator<WatchEvent<T>> {
    const parameters = {
      watch: "1",
      allowWatchBookmarks: "true",
      timeoutSeconds: String(WATCH_SECONDS),
      resourceVersion,
    };
    for await (const line of linesOf(await this.#get(collection, parameters, signal))) {
      const event = JSON.parse(line) as WatchEvent<T>;
      if (event.type === "ERROR") throw refusal(event.object.code, event.object.message);
      yield event;
    }
  }

  async close(): Promise<void> {
    await this.#agent?.destroy();
  }

  async #get(
    { path, labelSelector }: Collection,
    parameters: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<Dispatcher.ResponseData["body"]> {
    const token = await this.#access.token?.();
    const dispatcher = await this.#dispatcher();
    const { statusCode, body } = await request(`${this.#access.url}${path}`, {
      query: { labelSelector, ...parameters },
      headers: { accept: "application/json", ...(token !== undefined && { authorization: `Bearer ${token}` }) },
      headersTimeout: ANSWER_MS,
      bodyTimeout: SILENCE_MS,
      signal,
      dispatcher,
    });
    if (statusCode === 200) return body;
    throw refusal(statusCode, `GET ${path} was answered with ${statusCode}: ${saidIn(await body.text())}`);
  }

  /** Connections that trust the authority as it is now. */
  async #dispatcher(): Promise<Agent> {
    const authority = await this.#access.authority?.();
    if (this.#agent === undefined || authority !== this.#authority) {
      void this.#agent?.close();
      this.#agent = new Agent({ connect: { timeout: ANSWER_MS, ...(authority !== undefined && { ca: authority }) } });
      this.#authority = authority;
    }
    return this.#agent;
  }
}

function refusal(code: number, message: string): Error {
  return code === GONE ? new GoneError(message) : new Error(message);
}

/** The server's own words, where it says them as it should. */
function saidIn(text: string): string {
  try {
    return (JSON.parse(text) as Partial<ApiStatus>).message ?? text;
  } catch {
    return text.trim();
  }
}

async function* linesOf(body: Dispatcher.ResponseData["body"]): AsyncGenerator<string> {
  let rest = "";
  body.setEncoding("utf8");
  for await (const chunk of body as AsyncIterable<string>) {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line !== "") yield line;
  }
}
