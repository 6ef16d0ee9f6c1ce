import type { PolicyParameters } from "../core/policy/types.ts";
import type { FleetView, LoadView, PolicyChoice } from "./protocol.ts";
import type { RollingWindow } from "./rolling-window.ts";
import type { WorkerRates } from "./worker-window.ts";

/** Where the load comes from, and how it is steered. */
export interface LoadSource {
  view(): LoadView;
  window(): RollingWindow;
  /** What the load's own requests say of each worker, by name. */
  workerRates(): ReadonlyMap<string, WorkerRates>;
  setConcurrency(concurrency: number): void;
  start(): void;
  /** Lets requests under way finish. */
  stop(): void;
}

/** The fleet behind a gateway; asked again and again for what it last knew, so it answers at once. */
export interface FleetSource {
  /** Undefined until it was first heard of. */
  view(): FleetView | undefined;
  /** Why it could not be asked the last time; undefined if it could. */
  readonly problem?: string | undefined;
  readonly policies: readonly PolicyChoice[];
  /** Rejects with words for the person who asked. */
  setPolicy(policy: string, parameters?: PolicyParameters): Promise<void>;
  /** Left out where caches cannot be emptied. */
  readonly resetCaches?: (() => Promise<CachesReset>) | undefined;
  /** Left out where workers are not ours. */
  readonly processes?: WorkerProcesses | undefined;
}

/** What came of emptying the caches of a fleet: one worker that cannot do it does not keep the others from it. */
export interface CachesReset {
  /** Workers whose caches are empty now. */
  readonly workers: number;
  /** In words, one for each of the others. */
  readonly problems: readonly string[];
}

/** Workers that were started by whoever serves the page. */
export interface WorkerProcesses {
  /** Those that are not running, by name, and since when. */
  readonly ended: ReadonlyMap<string, number>;
  /** Ends a worker without a word, as a crash would. */
  end(worker: string): Promise<void>;
  start(worker: string): Promise<void>;
}
