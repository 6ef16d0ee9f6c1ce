import type { AttemptEnd, AttemptFault } from "../decider.ts";
import type { FleetSync } from "../fleet-sync.ts";
import type { AttemptObserver } from "../local-decider.ts";
import type { WorkerDirectory } from "../worker-directory.ts";
import { DEFAULT_THRESHOLDS, type HealthThresholds, WorkerHealth } from "./worker-health.ts";
import { type WorkerProbe, httpProbe } from "./worker-probe.ts";

export interface HealthMonitorOptions {
  readonly directory: WorkerDirectory;
  readonly fleet: Pick<FleetSync, "setHealthy">;
  readonly probe?: WorkerProbe;
  readonly intervalMs?: number;
  readonly thresholds?: HealthThresholds;
  /** Told when a worker is found unfit, or fit again. */
  readonly changed?: (worker: string, isHealthy: boolean) => void;
}

const DEFAULT_INTERVAL_MS = 2000;
const PROBE_TIMEOUT_MS = 2000;

/** What an attempt can fail by that says something about its worker. */
const WORKER_FAULTS: ReadonlySet<AttemptFault> = new Set([
  "connect",
  "reset",
  "stream-cut",
  "stream-error",
  "first-byte-timeout",
  "gap-timeout",
]);

/** Watches workers both ways: asks them how they are, and listens to how requests fare with them. */
export class HealthMonitor implements AttemptObserver {
  readonly #options: HealthMonitorOptions;
  readonly #probe: WorkerProbe;
  readonly #health = new Map<string, WorkerHealth>();
  readonly #probing = new Map<string, Promise<void>>();
  readonly #forget: () => void;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: HealthMonitorOptions) {
    this.#options = options;
    this.#probe = options.probe ?? httpProbe(PROBE_TIMEOUT_MS);
    this.#forget = options.directory.onChange(() => this.#fleetChanged());
  }

  /** Probes every worker once, and from then on every so often. */
  async start(): Promise<void> {
    this.#timer ??= setInterval(() => void this.probeAll(), this.#options.intervalMs ?? DEFAULT_INTERVAL_MS);
    this.#timer.unref();
    await this.probeAll();
  }

  async probeAll(): Promise<void> {
    const urls = new Map(this.#options.directory.list().map(({ worker, url }) => [worker, url]));
    await Promise.all([...urls].map(([worker, url]) => this.#probeOnce(worker, url)));
  }

  attemptEnded(worker: string, { outcome, fault, mayRetry }: AttemptEnd): void {
    const isFailure = fault !== undefined && (WORKER_FAULTS.has(fault) || (fault === "status" && outcome === "failed"));
    if (!isFailure && outcome !== "completed") return;
    this.#update(worker, (health) => health.attempted(!isFailure, performance.now()));
    // A worker that cannot be reached is most likely gone; asking at once spares others from finding out.
    if (fault === "connect" && mayRetry !== false) {
      const url = this.#options.directory.list().find((listed) => listed.worker === worker)?.url;
      if (url !== undefined) void this.#probeOnce(worker, url);
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#forget();
    await Promise.all(this.#probing.values());
  }

  /** One probe of a worker at a time. */
  #probeOnce(worker: string, url: string): Promise<void> {
    const running = this.#probing.get(worker);
    if (running !== undefined) return running;
    const probing = this.#probeNow(worker, url).finally(() => this.#probing.delete(worker));
    this.#probing.set(worker, probing);
    return probing;
  }

  async #probeNow(worker: string, url: string): Promise<void> {
    const { isHealthy, models } = await this.#probe(url);
    this.#update(worker, (health) => health.probed(isHealthy, performance.now()));
    if (models !== undefined) this.#options.directory.setModels(worker, models);
  }

  #update(worker: string, change: (health: WorkerHealth) => void): void {
    const { directory, fleet, changed, thresholds = DEFAULT_THRESHOLDS } = this.#options;
    if (directory.list().every((listed) => listed.worker !== worker)) return;
    let health = this.#health.get(worker);
    if (health === undefined) {
      health = new WorkerHealth(thresholds);
      this.#health.set(worker, health);
    }
    const before = health.isHealthy;
    change(health);
    if (health.isHealthy === before) return;
    fleet.setHealthy(worker, health.isHealthy);
    changed?.(worker, health.isHealthy);
  }

  #fleetChanged(): void {
    const present = new Map(this.#options.directory.list().map(({ worker, url }) => [worker, url]));
    for (const worker of this.#health.keys()) if (!present.has(worker)) this.#health.delete(worker);
    if (this.#timer === undefined) return;
    for (const [worker, url] of present) if (!this.#health.has(worker)) void this.#probeOnce(worker, url);
  }
}
