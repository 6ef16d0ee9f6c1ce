import { type Introduction, askForDescription } from "./parts/self-description.ts";
import type { DiscoveredWorker, DiscoveryListener, DiscoveryPlane, DiscoveryWatch } from "./types.ts";

export interface DescribedDiscoveryOptions {
  readonly plane: DiscoveryPlane;
  /** How long a worker that gave no answer is left alone. */
  readonly intervalMs: number;
  readonly ask?: (url: string) => Promise<Introduction>;
}

/**
 * Workers that another plane finds, completed by what they say of themselves: nobody has to write down where the events of
 * our own workers are, or how large they are. What was written down counts before what they say. A worker is told of when it
 * has answered, or at once if it cannot be reached; it is asked again until it gives an answer of any kind.
 */
export class DescribedDiscovery implements DiscoveryPlane {
  readonly #options: DescribedDiscoveryOptions;

  constructor(options: DescribedDiscoveryOptions) {
    this.#options = options;
  }

  async watch(listener: DiscoveryListener): Promise<DiscoveryWatch> {
    const asking = new Asking(listener, this.#options);
    const watch = await this.#options.plane.watch(asking);
    await asking.settled();
    return {
      look: async () => {
        await watch.look?.();
        await asking.settled();
      },
      close: async () => {
        asking.close();
        await watch.close();
      },
    };
  }
}

interface Found {
  readonly worker: DiscoveredWorker;
  /** Whether the listener knows the worker's name, from now or from before it changed. */
  isKnown: boolean;
  /** Whether it knows of the worker as it is now. */
  isTold: boolean;
  timer?: NodeJS.Timeout;
}

class Asking implements DiscoveryListener {
  readonly #listener: DiscoveryListener;
  readonly #intervalMs: number;
  readonly #ask: (url: string) => Promise<Introduction>;
  readonly #found = new Map<string, Found>();
  readonly #underWay = new Set<Promise<void>>();

  constructor(listener: DiscoveryListener, { intervalMs, ask = askForDescription }: DescribedDiscoveryOptions) {
    this.#listener = listener;
    this.#intervalMs = intervalMs;
    this.#ask = ask;
  }

  appeared(worker: DiscoveredWorker): void {
    this.#find(worker, false);
  }

  changed(worker: DiscoveredWorker): void {
    this.#find(worker, this.#forget(worker.name));
  }

  left(name: string): void {
    if (this.#forget(name)) this.#listener.left(name);
  }

  problem(message: string): void {
    this.#listener.problem?.(message);
  }

  /** Resolves when everybody found so far has been asked once. */
  async settled(): Promise<void> {
    await Promise.all(this.#underWay);
  }

  close(): void {
    for (const name of this.#found.keys()) this.#forget(name);
  }

  #find(worker: DiscoveredWorker, isKnown: boolean): void {
    const found: Found = { worker, isKnown, isTold: false };
    this.#found.set(worker.name, found);
    // Whoever wrote down where the events are knows the worker better than it does.
    if (worker.events === undefined) this.#askAbout(found);
    else this.#tell(found, worker);
  }

  #askAbout(found: Found): void {
    const asked = this.#introduce(found).finally(() => this.#underWay.delete(asked));
    this.#underWay.add(asked);
  }

  async #introduce(found: Found): Promise<void> {
    const { worker } = found;
    const introduction = await this.#ask(worker.url);
    // It may have left, or be another by now.
    if (this.#found.get(worker.name) !== found) return;
    if (introduction.kind === "described") {
      const { name: _name, url: _url, ...said } = introduction.description.worker;
      this.#tell(found, { ...said, ...worker });
      return;
    }
    if (!found.isTold) this.#tell(found, worker);
    if (introduction.kind === "foreign") return;
    found.timer = setTimeout(() => this.#askAbout(found), this.#intervalMs);
    found.timer.unref();
  }

  #tell(found: Found, worker: DiscoveredWorker): void {
    if (found.isKnown) this.#listener.changed(worker);
    else this.#listener.appeared(worker);
    found.isKnown = true;
    found.isTold = true;
  }

  /** Whether the listener had been told of the worker. */
  #forget(name: string): boolean {
    const found = this.#found.get(name);
    clearTimeout(found?.timer);
    this.#found.delete(name);
    return found?.isKnown ?? false;
  }
}
