import { type Clock, NS_PER_MS } from "../../core/clock.ts";
import { POLICIES } from "../../core/policy/registry.ts";
import type { DecisionRecord } from "../../core/record/decision-record.ts";
import { explainRecord } from "../../core/record/explain-record.ts";
import type { Router } from "../../core/router.ts";
import type { FleetSync } from "../fleet-sync.ts";
import type { PeerSharing } from "../peer-sharing.ts";
import type { WorkerDirectory } from "../worker-directory.ts";

/** What the admin API shows is read from these. */
export interface AdminSources {
  readonly router: Router;
  readonly clock: Clock;
  readonly fleet: FleetSync;
  readonly directory: WorkerDirectory;
}

/** Every replica with its load from both sides: what the router believes, and what the engine says. */
export function workersView({ router, clock, fleet, directory }: AdminSources): object[] {
  const nowNs = clock.nowNs();
  return fleet.workers.map(({ worker, dpRank, replica, phase, circuit, indexState }) => {
    const load = router.describeLoad(replica);
    const { reported, reportedNs } = load;
    return {
      name: router.fleet.name(replica),
      worker: worker.name,
      url: worker.url,
      dpRank,
      models: directory.modelsOf(worker.name),
      state: router.fleet.state(replica),
      phase,
      circuit,
      indexState,
      modelled: load.modelled,
      reported: reported ?? null,
      reportedAgeMs: reportedNs === undefined ? null : (nowNs - reportedNs) / NS_PER_MS,
      capacity: { batchSlots: load.batchSlots, kvBlocks: load.kvBlocks, stepTokens: load.stepTokens },
      events: router.feedCounts(replica) ?? null,
    };
  });
}

/** The other gateways before the fleet, as far as they tell of themselves. */
export function peersView(sharing: Pick<PeerSharing, "name" | "peers" | "counts"> | undefined): object {
  if (sharing === undefined) return { name: null, peers: [], messages: null };
  return { name: sharing.name, peers: sharing.peers, messages: sharing.counts };
}

/** The index as a whole. */
export function indexView({ router, fleet }: AdminSources): object {
  const replicas = fleet.workers.map(({ replica, indexState }) => ({
    name: router.fleet.name(replica),
    state: indexState,
    events: router.feedCounts(replica) ?? null,
  }));
  return { blockTokens: router.blockTokens, ...router.index.stats(), replicas };
}

/** The policy in force with its knobs, and all that could be. */
export function policyView({ router }: AdminSources): object {
  const { name, parameters } = router.policy;
  const available = POLICIES.map(({ name: policy, about, parameters: knobs }) => ({
    policy,
    about,
    parameters: knobs,
  }));
  return { policy: name, parameters, available };
}

/** A decision without its candidates, for lists. */
export function decisionSummary(record: DecisionRecord): object {
  const { candidates: _, ...summary } = record;
  return summary;
}

/** A decision with every candidate's cost taken apart. */
export function explainedDecision({ router }: AdminSources, record: DecisionRecord): object {
  // What a policy has learned is in the one that decided; it is the same object as long as nobody changed it.
  const { policy } = router;
  const isSame = policy.name === record.policy && policy.parameters === record.parameters;
  const { explanation, candidates, ...rest } = explainRecord(record, isSame ? policy : undefined);
  const costs = explanation?.candidates.map(({ replica, cost, terms }) => ({
    ...candidates?.[replica],
    cost: Number.isFinite(cost) ? cost : null,
    terms,
  }));
  const others = router.log.attempts(record.request).filter(({ decision }) => decision !== record.decision);
  return {
    ...rest,
    rule: explanation?.rule ?? null,
    unit: explanation?.unit ?? null,
    candidates: costs ?? candidates ?? null,
    otherAttempts: others.map(({ decision }) => decision),
  };
}
