import { Gauge, type Registry } from "prom-client";
import { type Clock, NS_PER_SECOND } from "../../core/clock.ts";
import type { Router } from "../../core/router.ts";
import type { CircuitState } from "../health/circuit-breaker.ts";

/** What the gauges are read from. */
export interface GaugedFleet {
  readonly router: Router;
  readonly clock: Clock;
  /** When the last event of a replica came; undefined if none has. */
  readonly lastEventNs: (replica: number) => number | undefined;
  readonly circuitOf: (replica: number) => CircuitState | undefined;
}

type Reading = (set: (value: number, labels?: Readonly<Record<string, string>>) => void) => void;

/** Puts the state of fleet, queue and index into a registry; everything is read when somebody asks, and costs nothing else. */
export function registerFleetGauges(registry: Registry, { router, clock, lastEventNs, circuitOf }: GaugedFleet): void {
  const gauge = (name: string, help: string, labelNames: readonly string[], read: Reading): void => {
    const made: Gauge = new Gauge({
      name: `warmpath_${name}`,
      help,
      labelNames: ["policy", ...labelNames],
      registers: [registry],
      collect: () => {
        made.reset();
        read((value, labels = {}) => made.set({ policy: router.policy.name, ...labels }, value));
      },
    });
  };
  const perWorker = (name: string, help: string, read: (replica: number) => number | undefined): void =>
    gauge(name, help, ["worker"], (set) => {
      for (const replica of router.fleet.indices()) {
        const value = read(replica);
        if (value !== undefined) set(value, { worker: router.fleet.name(replica) });
      }
    });

  gauge("requests_unfinished", "Requests offered and not ended.", [], (set) => set(router.accounting.unfinished));
  gauge("queue_depth", "Requests waiting in the router.", [], (set) => set(router.queued));
  gauge("worker_state", "1 for the state a worker is in: ready, draining or down.", ["worker", "state"], (set) => {
    for (const replica of router.fleet.indices()) {
      set(1, { worker: router.fleet.name(replica), state: router.fleet.state(replica) });
    }
  });

  const circuitHelp = "1 for the state of a worker's circuit: closed, open or half-open.";
  gauge("worker_circuit_state", circuitHelp, ["worker", "state"], (set) => {
    for (const replica of router.fleet.indices()) {
      const state = circuitOf(replica);
      if (state !== undefined) set(1, { worker: router.fleet.name(replica), state });
    }
  });

  const { columns } = router.load;
  perWorker("worker_in_flight", "Requests placed and not ended.", (replica) => columns.inFlight[replica]);
  perWorker("worker_decoding", "Of those, the ones past their first token.", (replica) => columns.decoding[replica]);
  perWorker(
    "worker_pending_prefill_tokens",
    "Prompt tokens placed, not cached and not known to be computed.",
    (replica) => columns.pendingPrefillTokens[replica],
  );
  perWorker("worker_context_tokens", "Context tokens being decoded.", (replica) => columns.contextTokens[replica]);
  perWorker("worker_active_blocks", "KV blocks of requests in flight.", (replica) => columns.activeBlocks[replica]);
  perWorker(
    "worker_new_blocks",
    "Of those, the ones that no two requests share.",
    (replica) => columns.newBlocks[replica],
  );
  const reported = (replica: number): { running: number; waiting: number; kvUsage: number } | undefined =>
    router.describeLoad(replica).reported;
  perWorker("worker_reported_running", "Requests in the engine's batch, by its own word.", (r) => reported(r)?.running);
  perWorker("worker_reported_waiting", "Requests in the engine's queue, by its own word.", (r) => reported(r)?.waiting);
  perWorker("worker_reported_kv_usage", "Share of the KV pool in use, by its own word.", (r) => reported(r)?.kvUsage);

  gauge("index_blocks", "Distinct KV blocks that some replica holds.", [], (set) => set(router.index.stats().blocks));
  gauge("index_bytes", "Memory of the index, allocated once.", [], (set) => set(router.index.stats().allocatedBytes));
  gauge("index_evicted_pages", "Pages forgotten because the cap was reached.", [], (set) =>
    set(router.index.stats().evictedPages),
  );
  gauge("index_state", "1 for how far the index can be trusted for a worker.", ["worker", "state"], (set) => {
    for (const replica of router.fleet.indices()) {
      set(1, { worker: router.fleet.name(replica), state: router.indexState(replica) });
    }
  });
  perWorker("index_staleness_seconds", "Time since the worker's last KV event.", (replica) => {
    const lastNs = lastEventNs(replica);
    return lastNs === undefined ? undefined : (clock.nowNs() - lastNs) / NS_PER_SECOND;
  });
  perWorker("index_gaps", "Gaps seen in the worker's KV events.", (replica) => router.feedCounts(replica)?.gaps);
  perWorker("index_resyncs", "Whole states asked of the worker.", (replica) => router.feedCounts(replica)?.resyncs);
  perWorker("index_events", "KV events applied.", (replica) => router.feedCounts(replica)?.applied);
}
