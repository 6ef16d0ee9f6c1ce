import { setTimeout as pause } from "node:timers/promises";
import { type ApiClient, type Collection, GoneError } from "./api-client.ts";
import type { ApiObject, WatchEvent } from "./objects.ts";

export interface ReflectorOptions<T extends ApiObject> {
  readonly client: ApiClient<T>;
  readonly collection: Collection;
  /** Told all objects after every change. */
  readonly changed: (objects: readonly T[]) => void;
  readonly problem: (message: string) => void;
  /** The first pause after failures; each one after it is twice as long. */
  readonly retryMs: number;
}

const LONGEST_PAUSE_MS = 30_000;
/** A watch that ends so soon with nothing said is as good as refused. */
const SHORT_WATCH_MS = 1000;

/**
 * Keeps a copy of a collection: lists it once, then follows its changes. A watch that ends goes on from the last version
 * heard; only a version that the server no longer knows makes a new list necessary. While nothing can be had the copy stays.
 */
export class Reflector<T extends ApiObject> {
  readonly #options: ReflectorOptions<T>;
  readonly #objects = new Map<string, T>();
  readonly #stop = new AbortController();
  #resourceVersion: string | undefined;
  #failures = 0;
  #following: Promise<void> | undefined;

  constructor(options: ReflectorOptions<T>) {
    this.#options = options;
  }

  /** Follows the collection from now on; resolves when it was listed for the first time, or could not be. */
  async start(): Promise<void> {
    await this.#attempt(() => this.#list());
    this.#following = this.#follow();
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#following;
    await this.#options.client.close();
  }

  async #follow(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      await this.#rest();
      await this.#attempt(async () => {
        if (this.#resourceVersion === undefined) await this.#list();
        await this.#watch(this.#resourceVersion ?? "");
      });
    }
  }

  async #attempt(what: () => Promise<void>): Promise<void> {
    try {
      await what();
    } catch (error) {
      if (this.#stop.signal.aborted) return;
      this.#failures += 1;
      if (error instanceof GoneError) this.#resourceVersion = undefined;
      else this.#options.problem((error as Error).message);
    }
  }

  async #list(): Promise<void> {
    const { client, collection } = this.#options;
    const { objects, resourceVersion } = await client.list(collection, this.#stop.signal);
    this.#objects.clear();
    for (const object of objects) this.#objects.set(object.metadata.name, object);
    this.#resourceVersion = resourceVersion;
    this.#tell();
  }

  async #watch(from: string): Promise<void> {
    const { client, collection } = this.#options;
    const startedMs = performance.now();
    let isSilent = true;
    for await (const event of client.watch(collection, from, this.#stop.signal)) {
      isSilent = false;
      this.#failures = 0;
      this.#apply(event);
    }
    if (isSilent && performance.now() - startedMs < SHORT_WATCH_MS) this.#failures += 1;
    else this.#failures = 0;
  }

  #apply(event: WatchEvent<T>): void {
    if (event.type === "ERROR") return;
    this.#resourceVersion = event.object.metadata.resourceVersion;
    if (event.type === "BOOKMARK") return;
    const { name } = event.object.metadata;
    if (event.type === "DELETED") this.#objects.delete(name);
    else this.#objects.set(name, event.object);
    this.#tell();
  }

  #tell(): void {
    if (!this.#stop.signal.aborted) this.#options.changed([...this.#objects.values()]);
  }

  /** The first failure is tried again at once; a rolling restart of the API server is not worth a pause. */
  async #rest(): Promise<void> {
    if (this.#failures < 2) return;
    const pauseMs = Math.min(this.#options.retryMs * 2 ** (this.#failures - 2), LONGEST_PAUSE_MS);
    // Gateways that lost the server together must not come back together.
    await pause(pauseMs * (0.5 + Math.random() / 2), undefined, { signal: this.#stop.signal, ref: false }).catch(
      () => {},
    );
  }
}
