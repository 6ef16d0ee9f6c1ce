import { NS_PER_MS, NS_PER_SECOND, type Nanoseconds } from "../../core/clock.ts";
import { WarmpathError } from "../../core/errors.ts";
import { Rng } from "../../core/rng.ts";
import { ArrivalSupply } from "../../workload/arrival-supply.ts";
import type { ArrivalProcess } from "../../workload/arrivals.ts";
import { ClosedLoop } from "../../workload/closed-loop.ts";
import { Conversations } from "../../workload/conversation/conversations.ts";
import type { ConversationParameters } from "../../workload/conversation/parameters.ts";
import { conversationPreset } from "../../workload/conversation/presets.ts";
import { type TurnProfile, turnProfile } from "../../workload/conversation/turn-profile.ts";
import { PrefixGroups } from "../../workload/prefix-groups.ts";
import type { SessionSupply, WorkloadSource } from "../../workload/request.ts";
import { Schedule } from "../../workload/schedule.ts";
import type { TraceProvenance } from "../../workload/trace/provenance.ts";
import type { TraceRow } from "../../workload/trace/row.ts";
import { TraceSessions } from "../../workload/trace/trace-sessions.ts";
import { effectiveTimesMs, jitterRows, scaleRows } from "../../workload/trace/transform.ts";
import type { Cell } from "./cells.ts";
import type { Experiment, LoadConfig, WorkloadConfig } from "./types.ts";

/** A trace after filter and slice, with where it comes from. */
export interface PreparedTrace {
  readonly rows: readonly TraceRow[];
  readonly provenance: TraceProvenance;
}

/** The requests of a cell. */
export interface CellWorkload {
  readonly source: WorkloadSource;
  /** Of a schedule: when its last request is due; Infinity where turns wait for answers, and so nobody knows it yet. */
  readonly lastDueNs?: Nanoseconds;
}

/** Makes the requests of a cell: content depends on the run's seed alone, and so is the same for every arm and level. */
export function cellWorkload(
  experiment: Pick<Experiment, "workload" | "load" | "warmUpSeconds">,
  cell: Cell,
  trace: PreparedTrace | undefined,
): CellWorkload {
  const { workload, load } = experiment;
  const rng = new Rng(cell.seeds.workload);
  if (workload.trace !== undefined && load.speed !== undefined) {
    const jitter = cell.arm.jitter ?? workload.trace.jitter;
    const { rows } = requireTrace(trace);
    const timed = scaleRows(jitter ? jitterRows(rows, rng) : rows, cell.level.speed ?? 1);
    const sessions = new TraceSessions(timed, workload.trace.blockTokens);
    const source = new Schedule(sessions);
    if (sessions.hasFollowUps) return { source, lastDueNs: Infinity };
    const lastMs = effectiveTimesMs(timed).reduce((latest, time) => Math.max(latest, time), 0);
    return { source, lastDueNs: Math.round(lastMs * NS_PER_MS) };
  }
  const supply = supplyOf(workload, rng, trace);
  if (cell.level.rateRps !== undefined) {
    return { source: new Schedule(new ArrivalSupply(supply, arrivalProcess(load, cell.level.rateRps), rng)) };
  }
  const { maxRateRps, rampSeconds = experiment.warmUpSeconds } = load;
  const source = new ClosedLoop(supply, {
    concurrency: cell.level.concurrency ?? 1,
    ...(maxRateRps === undefined ? {} : { maxRateRps }),
    rampNs: rampSeconds * NS_PER_SECOND,
  });
  return { source };
}

/** The parameters of the conversations: the preset's, but for what the file has otherwise. */
export function conversationParameters(workload: WorkloadConfig): ConversationParameters | undefined {
  if (workload.conversations === undefined) return undefined;
  const { preset, ...changes } = workload.conversations;
  const given = Object.entries(changes).filter(([, value]) => value !== undefined);
  return {
    ...conversationPreset(preset).parameters,
    ...(Object.fromEntries(given) as Partial<ConversationParameters>),
  };
}

const PROFILED_SESSIONS = 500;

/** Mean tokens of prompt and answer together, which is what a sequence holds of the KV pool at its end. */
export function meanSequenceTokens(workload: WorkloadConfig, trace: PreparedTrace | undefined, seed: number): number {
  const { turns, requests, outputMean } = workloadProfile(workload, trace, seed);
  const inputs = turns.reduce((sum, turn) => sum + turn.inputMean * turn.requests, 0);
  return Math.round(inputs / requests + outputMean);
}

/** Mean number of requests that a session has. */
export function meanSessionRequests(workload: WorkloadConfig, trace: PreparedTrace | undefined, seed: number): number {
  const { requests, sessions } = workloadProfile(workload, trace, seed);
  return requests / sessions;
}

function workloadProfile(workload: WorkloadConfig, trace: PreparedTrace | undefined, seed: number): TurnProfile {
  return turnProfile(supplyOf(workload, new Rng(seed), trace), trace?.rows.length ?? PROFILED_SESSIONS);
}

function supplyOf(workload: WorkloadConfig, rng: Rng, trace: PreparedTrace | undefined): SessionSupply {
  const conversations = conversationParameters(workload);
  if (conversations !== undefined) return new Conversations(conversations, rng);
  if (workload.prefixGroups !== undefined) return new PrefixGroups(workload.prefixGroups, rng);
  return new TraceSessions(requireTrace(trace).rows, workload.trace?.blockTokens ?? 512);
}

function arrivalProcess({ arrivals = "poisson", gammaShape, burstSize }: LoadConfig, rateRps: number): ArrivalProcess {
  switch (arrivals) {
    case "gamma":
      return { kind: "gamma", rateRps, shape: gammaShape ?? 1 };
    case "burst":
      return { kind: "burst", rateRps, burstSize: burstSize ?? 1 };
    default:
      return { kind: arrivals, rateRps };
  }
}

function requireTrace(trace: PreparedTrace | undefined): PreparedTrace {
  if (trace !== undefined) return trace;
  throw new WarmpathError("WP_INVALID_STATE", "the experiment replays a trace that was not read");
}
