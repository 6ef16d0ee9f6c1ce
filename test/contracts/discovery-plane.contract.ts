import { afterEach, describe, expect, test } from "vitest";
import type {
  DiscoveredWorker,
  DiscoveryListener,
  DiscoveryPlane,
  DiscoveryWatch,
} from "../../src/planes/discovery/types.ts";

/** A world in which workers come and go, and a plane that looks at it. */
export interface DiscoveryWorld {
  readonly plane: DiscoveryPlane;
  /** Makes these all the workers there are. */
  set(workers: readonly DiscoveredWorker[]): Promise<void>;
  /** Makes the world unreadable, where it can be. */
  breakIt?(): Promise<void>;
  close(): Promise<void>;
}

export interface DiscoveryPlaneUnderTest {
  readonly title: string;
  create(workers: readonly DiscoveredWorker[]): Promise<DiscoveryWorld>;
  /** What can happen in this world. */
  readonly can: readonly ("come" | "change")[];
  /** Workers of this world; the first two by name, and the first one described differently. */
  readonly workers: readonly [DiscoveredWorker, DiscoveredWorker, DiscoveredWorker];
}

class NotingListener implements DiscoveryListener {
  readonly heard: string[] = [];
  readonly brokenPromises: string[] = [];
  readonly workers = new Map<string, DiscoveredWorker>();
  #waiting: (() => void)[] = [];

  appeared(worker: DiscoveredWorker): void {
    this.#must(!this.workers.has(worker.name), `${worker.name} appeared twice`);
    this.workers.set(worker.name, worker);
    this.#note(`appeared ${worker.name}`);
  }

  changed(worker: DiscoveredWorker): void {
    this.#must(this.workers.has(worker.name), `${worker.name} changed before it appeared`);
    this.workers.set(worker.name, worker);
    this.#note(`changed ${worker.name}`);
  }

  left(name: string): void {
    this.#must(this.workers.delete(name), `${name} left before it appeared`);
    this.#note(`left ${name}`);
  }

  problem(): void {
    this.#note("problem");
  }

  async until(what: string): Promise<void> {
    while (!this.heard.includes(what)) {
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve);
      });
    }
  }

  #must(isKept: boolean, what: string): void {
    if (!isKept) this.brokenPromises.push(what);
  }

  #note(what: string): void {
    this.heard.push(what);
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}

/** What every discovery plane must do, wherever it looks. */
export function describeDiscoveryContract(subject: DiscoveryPlaneUnderTest): void {
  const [first, second, firstChanged] = subject.workers;

  describe(`discovery plane ${subject.title}`, () => {
    let world: DiscoveryWorld;
    const watches: DiscoveryWatch[] = [];
    const listeners: NotingListener[] = [];

    afterEach(async () => {
      for (const watch of watches.splice(0)) await watch.close();
      await world.close();
      expect(listeners.splice(0).flatMap(({ brokenPromises }) => brokenPromises)).toEqual([]);
    });

    async function watched(workers: readonly DiscoveredWorker[]): Promise<NotingListener> {
      world = await subject.create(workers);
      return watching();
    }

    async function watching(): Promise<NotingListener> {
      const listener = new NotingListener();
      listeners.push(listener);
      watches.push(await world.plane.watch(listener));
      return listener;
    }

    test("has told of the workers there are when its first look is over", async () => {
      const listener = await watched([first, second]);
      expect(listener.heard).toEqual([`appeared ${first.name}`, `appeared ${second.name}`]);
      expect([...listener.workers.values()]).toEqual([first, second]);
    });

    test("tells everybody who watches", async () => {
      await watched([first]);
      expect((await watching()).heard).toEqual([`appeared ${first.name}`]);
    });

    test.runIf(subject.can.includes("come"))("tells who comes, who leaves and who comes back", async () => {
      const listener = await watched([first]);
      await world.set([first, second]);
      await listener.until(`appeared ${second.name}`);
      await world.set([second]);
      await listener.until(`left ${first.name}`);
      listener.heard.length = 0;
      await world.set([first, second]);
      await listener.until(`appeared ${first.name}`);
      expect(listener.heard).toEqual([`appeared ${first.name}`]);
    });

    test.runIf(subject.can.includes("come"))("tells that everybody has left", async () => {
      const listener = await watched([first, second]);
      await world.set([]);
      await Promise.all([listener.until(`left ${first.name}`), listener.until(`left ${second.name}`)]);
      expect(listener.workers.size).toBe(0);
    });

    test.runIf(subject.can.includes("change"))(
      "tells that a worker is described differently, and no more",
      async () => {
        const listener = await watched([first, second]);
        await world.set([firstChanged, second]);
        await listener.until(`changed ${first.name}`);
        expect(listener.workers.get(first.name)).toEqual(firstChanged);
        expect(listener.heard).toHaveLength(3);
      },
    );

    test("keeps what it knew while the world cannot be read", async (context) => {
      const listener = await watched([first]);
      if (world.breakIt === undefined) {
        context.skip("nothing can be in the way here");
        return;
      }
      await world.breakIt();
      await listener.until("problem");
      expect([...listener.workers.keys()]).toEqual([first.name]);
      await world.set([first, second]);
      await listener.until(`appeared ${second.name}`);
      expect(listener.heard).toEqual([`appeared ${first.name}`, "problem", `appeared ${second.name}`]);
    });

    test.runIf(subject.can.includes("come"))("tells nothing once it is closed", async () => {
      const listener = await watched([first]);
      await watches.splice(0)[0].close();
      const staying = await watching();
      await world.set([first, second]);
      await staying.until(`appeared ${second.name}`);
      expect(listener.heard).toEqual([`appeared ${first.name}`]);
    });
  });
}
