import { setTimeout as pause } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { WarmpathError } from "../../../core/errors.ts";
import type { HealthMonitor } from "../../../gateway/health/health-monitor.ts";
import type { LocalDecider } from "../../../gateway/local-decider.ts";
import type { DiscoveryWatch } from "../../../planes/discovery/types.ts";
import type { Discovery } from "./discovery.ts";
import type { Estate } from "./process-roles.ts";
import { createPolicyFrom, retryBudgetFrom, rulesFrom } from "./router-settings.ts";
import type { GatewaySettings } from "./settings.ts";
import { workersFrom } from "./worker-option.ts";

/** The parts of a decider that change while it serves, and that outlive it. */
export interface DeciderParts {
  readonly decider: LocalDecider;
  readonly discovery: Discovery;
  readonly watches: readonly DiscoveryWatch[];
  readonly monitor: HealthMonitor;
}

const LOOK_MS = 20;
/** Longer than the fleet waits for the state of a worker before it serves without. */
const CAUGHT_UP_WITHIN_MS = 10_000;

/** Changes what may change while requests come. */
export function applyToDecider(parts: DeciderParts, before: GatewaySettings, after: GatewaySettings): void {
  const { decider, discovery, watches, monitor } = parts;
  // A policy that is not written differently keeps what it has learned, and what the admin API made of it.
  if (before.policy !== after.policy || !isDeepStrictEqual(before.set, after.set)) {
    decider.setPolicy(createPolicyFrom(after));
  }
  decider.setRules(rulesFrom(after));
  decider.retryBudget.configure(retryBudgetFrom(after));
  if (before.healthSeconds !== after.healthSeconds) monitor.setIntervalMs(after.healthSeconds * 1000);
  discovery.named.replace(workersFrom(after.worker));
  for (const watch of watches) void watch.look?.();
}

/** What a successor must be told, because it could not find out by itself. */
export function estateOf({ decider, discovery }: DeciderParts): Estate {
  const { workers } = decider.fleet;
  return {
    leases: discovery.registry?.leases ?? [],
    drained: [...new Set(workers.filter(({ phase }) => phase === "draining").map(({ worker }) => worker.name))],
    readyWorkers: decider.readiness().workers.ready,
  };
}

/** Takes over from a decider that serves: goes on with what it knew, and knows all caches before anything is decided. */
export async function inherit(parts: DeciderParts, { leases, drained, readyWorkers }: Estate): Promise<void> {
  const { decider, discovery, monitor } = parts;
  const { fleet } = decider;
  discovery.registry?.takeOver(leases);
  for (const worker of drained) fleet.drain(worker);
  await monitor.probeAll();
  const isLearning = (): boolean => fleet.workers.some(({ phase }) => phase === "catching-up");
  const isUnready = (): boolean => readyWorkers > 0 && decider.readiness().workers.ready === 0;
  const deadlineMs = performance.now() + CAUGHT_UP_WITHIN_MS;
  while ((isLearning() || isUnready()) && performance.now() < deadlineMs) await pause(LOOK_MS);
  if (!isUnready()) return;
  const waited = `${CAUGHT_UP_WITHIN_MS / 1000} s`;
  throw new WarmpathError("WP_INVALID_STATE", `no worker was ready within ${waited}, and ${readyWorkers} are now`);
}
