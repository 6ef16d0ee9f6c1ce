import { WarmpathError } from "../core/errors.ts";
import type { Baselines } from "./baselines.ts";
import { History, historyRow } from "./history.ts";
import { Marks } from "./marks.ts";
import type { Command, FleetView, Hello, Snapshot, WorkerState, WorkerView } from "./protocol.ts";
import type { SloLimits } from "./rolling-window.ts";
import type { FleetSource, LoadSource } from "./sources.ts";

/** What a page is told once, as far as the feed does not know it. */
export type FeedIdentity = Pick<Hello, "serverId" | "version" | "title" | "about" | "targetUrl">;

export interface LiveFeedOptions {
  readonly identity: FeedIdentity;
  readonly load: LoadSource;
  /** Left out for an endpoint that nobody administers. */
  readonly fleet?: FleetSource | undefined;
  readonly slo: SloLimits;
  readonly baselines: Baselines;
  /** Wall clock in milliseconds. */
  readonly now: () => number;
}

/** What was true of a process that is gone is not shown as if it still were. */
const NOTHING_OF_THE_DEAD = { running: null, queued: null, kvShare: null, hitShare: null, requestsPerSecond: null };

/** Puts together what the page shows, remembers the last minutes of it, and carries commands out. */
export class LiveFeed {
  readonly #options: LiveFeedOptions;
  readonly #history = new History();
  readonly #marks: Marks;
  /** The state each worker was last seen in, and since when. */
  readonly #workers = new Map<string, { readonly state: WorkerState; readonly sinceMs: number }>();
  /** The policy that was last seen in force, with its knobs. */
  #inForce: string | undefined;
  #snapshot: Snapshot;

  constructor(options: LiveFeedOptions) {
    this.#options = options;
    this.#marks = new Marks(options.load.window().windowSeconds * 1000);
    this.#snapshot = this.tick();
  }

  get hello(): Hello {
    const { identity, slo, baselines, fleet } = this.#options;
    return {
      ...identity,
      capabilities: {
        fleet: fleet !== undefined,
        resetCaches: fleet?.resetCaches !== undefined,
        workerProcesses: fleet?.processes !== undefined,
      },
      policies: fleet?.policies ?? [],
      slo,
      baselines,
      history: this.#history.rows,
      snapshot: this.#snapshot,
    };
  }

  /** Looks at everything once; call it at an even pace. */
  tick(): Snapshot {
    const { load, now } = this.#options;
    const atMs = now();
    const view = load.view();
    const window = load.window();
    const fleet = this.#fleetAt(atMs);
    this.#lookAtPolicy(atMs);
    this.#marks.observe(atMs, window.oldestInFlightMs);
    this.#history.add(historyRow(atMs, view.concurrency, view.state === "running", window));
    const fleetProblem = this.#options.fleet?.problem ?? null;
    this.#snapshot = { atMs, load: view, window, fleet: fleet ?? null, fleetProblem, marks: this.#marks.all };
    return this.#snapshot;
  }

  /** Does what a page asks; rejects with words where it cannot be done. */
  async run(command: Command): Promise<void> {
    const { load, fleet, now } = this.#options;
    switch (command.kind) {
      case "set-concurrency":
        load.setConcurrency(command.concurrency);
        return;
      case "start":
        load.start();
        return;
      case "stop":
        load.stop();
        return;
      case "set-policy":
        await present(fleet, "there is no gateway whose policy could be changed").setPolicy(
          command.policy,
          command.parameters,
        );
        this.#lookAtPolicy(now());
        return;
      case "reset-caches":
        await this.#resetCaches();
        return;
      case "end-worker":
        await present(fleet?.processes, "these workers were not started from here").end(command.worker);
        return;
      case "start-worker":
        await present(fleet?.processes, "these workers were not started from here").start(command.worker);
    }
  }

  async #resetCaches(): Promise<void> {
    const { fleet, now } = this.#options;
    const { workers, problems } = await present(
      fleet?.resetCaches,
      "the caches of this fleet cannot be reset from here",
    )();
    if (workers + problems.length === 0) throw new WarmpathError("WP_INVALID_STATE", "no worker is known to be there");
    if (workers > 0) this.#marks.add("caches-reset", "caches reset", now());
    if (problems.length > 0) throw new WarmpathError("WP_INVALID_STATE", `not reset: ${problems.join("; ")}`);
  }

  /** Marks a policy that is not the one from before, whoever changed it: other pages, other programs and a reload do too. */
  #lookAtPolicy(atMs: number): void {
    const view = this.#options.fleet?.view();
    if (view === undefined) return;
    const inForce = JSON.stringify([view.policy, view.parameters]);
    if (this.#inForce !== undefined && this.#inForce !== inForce) this.#marks.add("policy", view.policy, atMs);
    this.#inForce = inForce;
  }

  #fleetAt(atMs: number): FleetView | undefined {
    const { fleet, load } = this.#options;
    const view = fleet?.view();
    if (view === undefined) return undefined;
    const rates = load.workerRates();
    const ended = fleet?.processes?.ended;
    const workers = view.workers.map((worker): WorkerView => {
      const isDead = ended?.has(worker.name) ?? false;
      const state = isDead ? "dead" : worker.state;
      const { requestsPerSecond = null, hitShare = null } = rates.get(worker.name) ?? {};
      const seen = { ...worker, state, requestsPerSecond, hitShare, sinceMs: this.#since(worker.name, state, atMs) };
      return isDead ? { ...seen, ...NOTHING_OF_THE_DEAD } : seen;
    });
    return { ...view, workers };
  }

  /** Since when a worker is in its state; losing one and having it back are marked. */
  #since(worker: string, state: WorkerState, atMs: number): number {
    const before = this.#workers.get(worker);
    if (before?.state === state) return before.sinceMs;
    this.#workers.set(worker, { state, sinceMs: atMs });
    const isLost = state === "dead" || state === "unhealthy";
    const wasLost = before?.state === "dead" || before?.state === "unhealthy";
    if (before !== undefined && isLost && !wasLost) this.#marks.add("worker-lost", `${worker} lost`, atMs);
    if (state === "ready" && wasLost) this.#marks.add("worker-back", `${worker} back`, atMs);
    return atMs;
  }
}

function present<T>(value: T | undefined, otherwise: string): T {
  if (value === undefined) throw new WarmpathError("WP_INVALID_STATE", otherwise);
  return value;
}
