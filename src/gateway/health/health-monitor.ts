import type { AttemptEnd, AttemptFault } from "../decider.ts";
import type { FleetSync } from "../fleet-sync.ts";
import type { AttemptObserver } from "../local-decider.ts";
import type { WorkerDirectory } from "../worker-directory.ts";
import {
  type AttemptFate,
  CircuitBreaker,
  type CircuitOptions,
  type CircuitState,
  DEFAULT_CIRCUIT,
} from "./circuit-breaker.ts";
import { type AttemptVerdict, DEFAULT_OUTLIERS, OutlierDetector, type OutlierOptions } from "./outlier-detector.ts";
import { type WorkerProbe, httpProbe } from "./worker-probe.ts";

export interface HealthMonitorOptions {
  readonly directory: WorkerDirectory;
  readonly fleet: Pick<FleetSync, "setCircuit">;
  readonly probe?: WorkerProbe;
  readonly intervalMs?: number;
  readonly circuit?: CircuitOptions;
  readonly outliers?: OutlierOptions;
  /** Told when a worker's circuit changes its state, and why, in words. */
  readonly changed?: (worker: string, state: CircuitState, reason: string) => void;
}

const DEFAULT_INTERVAL_MS = 2000;
const PROBE_TIMEOUT_MS = 2000;

/** What an attempt can fail by that says something about its worker. */
const WORKER_FAULTS: ReadonlySet<AttemptFault> = new Set(["connect", "reset", "stream-cut", "stream-error"]);

/** Those of them by which a worker shows that it is not there, so that nothing may be sent to it, whoever else is left. */
const LOSSES: ReadonlySet<AttemptFault> = new Set(["connect", "reset", "stream-cut"]);

/** Those that a request can bring upon whoever it is sent to. */
const PROVOKED: ReadonlySet<AttemptFault> = new Set(["reset", "stream-cut"]);

const TIMEOUTS: ReadonlySet<AttemptFault> = new Set(["first-byte-timeout", "gap-timeout"]);

/**
 * Watches workers both ways: asks them how they are, and listens to how requests fare with them. Each has a circuit; one that
 * does much worse than the fleet has it opened from outside, as long as enough of the fleet is left.
 */
export class HealthMonitor implements AttemptObserver {
  readonly #options: HealthMonitorOptions;
  readonly #probe: WorkerProbe;
  readonly #circuits = new Map<string, CircuitBreaker>();
  readonly #outliers: OutlierDetector;
  readonly #probing = new Map<string, Promise<void>>();
  readonly #forget: () => void;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: HealthMonitorOptions) {
    this.#options = options;
    this.#probe = options.probe ?? httpProbe(PROBE_TIMEOUT_MS);
    this.#outliers = new OutlierDetector(options.outliers ?? DEFAULT_OUTLIERS);
    this.#forget = options.directory.onChange(() => this.#fleetChanged());
  }

  /** Probes every worker once, and from then on every so often. */
  async start(): Promise<void> {
    this.#timer ??= setInterval(() => void this.probeAll(), this.#options.intervalMs ?? DEFAULT_INTERVAL_MS);
    this.#timer.unref();
    await this.probeAll();
  }

  /** Changes how often workers are probed. */
  setIntervalMs(intervalMs: number): void {
    if (this.#timer === undefined) return;
    clearInterval(this.#timer);
    this.#timer = setInterval(() => void this.probeAll(), intervalMs);
    this.#timer.unref();
  }

  async probeAll(): Promise<void> {
    const urls = new Map(this.#options.directory.list().map(({ worker, url }) => [worker, url]));
    await Promise.all([...urls].map(([worker, url]) => this.#probeOnce(worker, url)));
  }

  attemptAnswered(worker: string, afterMs: number): void {
    // Of no interest but for trials, and this is called for every request.
    if (this.#circuits.get(worker)?.state !== "half-open") return;
    const nowMs = performance.now();
    this.#update(worker, (circuit) => circuit.answered(nowMs - afterMs, nowMs));
  }

  attemptEnded(worker: string, end: AttemptEnd, afterMs: number, hasFailedElsewhere = false): void {
    const { fault, mayRetry } = end;
    const verdict = verdictOf(end);
    if (verdict === undefined) return;
    const nowMs = performance.now();
    this.#update(worker, (circuit) => {
      const outlier = this.#outliers.observed(worker, verdict, nowMs);
      // A bad request fails wherever it goes, and is tried at several: what fails everywhere must not shut the fleet.
      circuit.attempted(fateOf(verdict, fault, hasFailedElsewhere), nowMs - afterMs, nowMs, () => this.#mayEject());
      if (outlier !== undefined && circuit.state === "closed" && this.#mayEject()) circuit.trip(outlier, nowMs);
    });
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
    const { isHealthy, models, adapters } = await this.#probe(url);
    this.#update(worker, (circuit) => circuit.probed(isHealthy, performance.now()));
    if (models !== undefined) this.#options.directory.setModels(worker, models, adapters);
  }

  #update(worker: string, change: (circuit: CircuitBreaker) => void): void {
    const { directory, fleet, changed, circuit: options = DEFAULT_CIRCUIT } = this.#options;
    if (directory.list().every((listed) => listed.worker !== worker)) return;
    let circuit = this.#circuits.get(worker);
    if (circuit === undefined) {
      circuit = new CircuitBreaker(options);
      this.#circuits.set(worker, circuit);
    }
    const before = circuit.state;
    change(circuit);
    const { state, reason } = circuit;
    if (state === before) return;
    // What it did before it was shut out says nothing about how it will do afterwards.
    if (state === "open") this.#outliers.forget(worker);
    fleet.setCircuit(worker, state);
    changed?.(worker, state, reason);
  }

  /** Whether enough of the fleet is left to do without one more. */
  #mayEject(): boolean {
    let excluded = 0;
    for (const { state } of this.#circuits.values()) if (state !== "closed") excluded++;
    const workers = new Set(this.#options.directory.list().map(({ worker }) => worker)).size;
    return this.#outliers.mayEject(workers, excluded);
  }

  #fleetChanged(): void {
    const present = new Map(this.#options.directory.list().map(({ worker, url }) => [worker, url]));
    for (const worker of this.#circuits.keys()) {
      if (present.has(worker)) continue;
      this.#circuits.delete(worker);
      this.#outliers.forget(worker);
    }
    if (this.#timer === undefined) return;
    for (const [worker, url] of present) if (!this.#circuits.has(worker)) void this.#probeOnce(worker, url);
  }
}

/** What an end says about the worker; undefined where it says nothing. */
function verdictOf({ outcome, fault }: AttemptEnd): AttemptVerdict | undefined {
  if (fault !== undefined && TIMEOUTS.has(fault)) return "timeout";
  if (fault !== undefined && (WORKER_FAULTS.has(fault) || (fault === "status" && outcome === "failed"))) {
    return "failure";
  }
  return outcome === "completed" ? "success" : undefined;
}

function fateOf(verdict: AttemptVerdict, fault: AttemptFault | undefined, hasFailedElsewhere: boolean): AttemptFate {
  if (verdict === "success") return "succeeded";
  // A request that breaks one worker after another is more likely to be at fault than all of them.
  if (hasFailedElsewhere && fault !== undefined && PROVOKED.has(fault)) return "failed";
  return fault !== undefined && LOSSES.has(fault) ? "lost" : "failed";
}
