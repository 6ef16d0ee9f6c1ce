import type { AdmissionMode, Watermarks } from "../../core/admission/types.ts";
import type { Slo } from "../../measure/slo.ts";
import type { PoolRule } from "../../sim/memory-plan.ts";
import type { NumberFormat } from "../../sim/timing/models.ts";
import type { ConversationParameters } from "../../workload/conversation/parameters.ts";
import type { PrefixGroupParameters } from "../../workload/prefix-groups.ts";

/** An experiment file with all defaults in place; docs/reference/experiment.md explains every field. */
export interface Experiment {
  readonly name: string;
  readonly about: string;
  readonly fleet: FleetConfig;
  readonly workload: WorkloadConfig;
  readonly load: LoadConfig;
  readonly arms: readonly Arm[];
  readonly warmUpSeconds: number;
  /** Requests that must have completed before the window, on live targets; 100 unless told, of a schedule none. */
  readonly warmUpRequests?: number | undefined;
  /** Length of what is measured; a scheduled trace is measured whole unless told. */
  readonly windowSeconds?: number | undefined;
  /** How long after the window answers are waited for. */
  readonly drainSeconds: number;
  readonly snapshots: number;
  readonly runs: number;
  readonly seed: number;
  /** Seeds of single branches of the tree; each follows from `seed` unless given. */
  readonly seeds: { readonly [Branch in SeedBranch]?: number | undefined };
  readonly slo: Slo;
  readonly cacheState: CacheState;
  readonly carryOverSeconds: number;
  /** After this a client gives up. */
  readonly timeoutSeconds?: number | undefined;
  readonly signals: SignalConfig;
  /** How a live target is found, switched and watched. */
  readonly live?: LiveConfig | undefined;
}

/**
 * What caches hold when a cell begins. `primed`: the same requests have been sent once, in a pass that is not measured.
 * `carried-over`: the same load has run on the fleet before the warm-up, as in a sweep that never restarts.
 */
export type CacheState = "cold" | "primed" | "carried-over";

/** The branches of the tree of seeds. */
export type SeedBranch = "workload" | "engine" | "policy" | "faults";

/** The engines, what they run on, and how many there are. */
export interface FleetConfig {
  readonly model: string;
  readonly gpu: string;
  readonly tensorParallel: number;
  /** Replicas; a list makes each number a level of its own. */
  readonly workers: readonly number[];
  readonly engine: EngineConfig;
  readonly weights: NumberFormat;
  readonly kv: NumberFormat;
  readonly blockTokens: number;
  readonly memoryFraction: number;
  /** The pool as an engine's log gives it; computed by the memory plan unless told. */
  readonly kvPoolTokens?: number | undefined;
  readonly memory: MemoryConfig;
  readonly speculation?: SpeculationConfig | undefined;
}

/** Which engine, and the limits it is started with; absent limits are the engine's own defaults. */
export interface EngineConfig {
  readonly profile: "vllm" | "trtllm" | "sglang";
  /** Picks constants of a version where there are some. */
  readonly version: string;
  readonly maxSequences?: number | undefined;
  readonly maxTokensPerStep?: number | undefined;
  readonly chunkedPrefill: boolean;
  readonly prefixReuse: boolean;
  /** Without CUDA graphs. */
  readonly eager: boolean;
  /** Steps for which prompts wait for others, and the share of a step's tokens up to which they do. */
  readonly batchWaitSteps?: number | undefined;
  readonly batchWaitTokensRatio?: number | undefined;
}

/** What replaces the computed figures of the memory plan. */
export interface MemoryConfig {
  readonly poolRule?: PoolRule | undefined;
  readonly hbmBytes?: number | undefined;
  readonly weightBytes?: number | undefined;
  readonly draftWeightBytes?: number | undefined;
  readonly overheadBytes?: number | undefined;
  readonly activationPeakBytes?: number | undefined;
  readonly tokensPerSequence?: number | undefined;
}

/** A draft model on the same GPUs. */
export interface SpeculationConfig {
  readonly model: string;
  readonly weights: NumberFormat;
  readonly kv: NumberFormat;
  readonly drafts: number;
  readonly acceptanceMean: number;
  readonly acceptanceDeviation: number;
}

/** What is asked: exactly one of the three. */
export interface WorkloadConfig {
  readonly conversations?: (Partial<Mutable<ConversationParameters>> & { readonly preset: string }) | undefined;
  readonly trace?: TraceConfig | undefined;
  readonly prefixGroups?: PrefixGroupParameters | undefined;
}

type Mutable<Fields> = { [Name in keyof Fields]: Fields[Name] | undefined };

/** A trace and what is done to it, in this order: filter, slice, jitter; speed belongs to the load. */
export interface TraceConfig {
  /** The first of these that exists is used. */
  readonly files: readonly string[];
  /** Tokens that an id of the trace stands for. */
  readonly blockTokens: number;
  readonly filter?:
    | { readonly maxInputTokens?: number | undefined; readonly maxTotalTokens?: number | undefined }
    | undefined;
  readonly slice?: { readonly fromRow?: number | undefined; readonly toRow?: number | undefined } | undefined;
  readonly jitter: boolean;
}

/** How hard the fleet is driven: exactly one of the lists of levels. */
export interface LoadConfig {
  readonly concurrency?: readonly number[] | undefined;
  /** The same load per worker, however many there are. */
  readonly concurrencyPerWorker?: readonly number[] | undefined;
  readonly maxRateRps?: number | undefined;
  readonly rampSeconds?: number | undefined;
  readonly rateRps?: readonly number[] | undefined;
  readonly arrivals?: "poisson" | "constant" | "gamma" | "burst" | undefined;
  readonly gammaShape?: number | undefined;
  readonly burstSize?: number | undefined;
  readonly speed?: readonly number[] | undefined;
}

/** One arm: a policy, its parameters, how requests are admitted, and what of the fleet is otherwise. */
export interface Arm {
  readonly name: string;
  readonly policy: string;
  readonly parameters: Readonly<Record<string, number | string>>;
  readonly admission: AdmissionConfig;
  readonly fleet?: FleetOverride | undefined;
  /** Overrides the trace's own setting. */
  readonly jitter?: boolean | undefined;
}

/** What an arm may have otherwise than the experiment's fleet. */
export interface FleetOverride {
  readonly tensorParallel?: number | undefined;
  readonly workers?: readonly number[] | undefined;
  readonly memoryFraction?: number | undefined;
  readonly kvPoolTokens?: number | undefined;
}

/** How requests are admitted; the same for every policy unless an arm says otherwise. */
export interface AdmissionConfig {
  readonly mode: AdmissionMode;
  readonly watermarks?: Watermarks | undefined;
  readonly queue?: { readonly maxRequests: number; readonly maxWaitSeconds: number } | undefined;
}

/** How one kind of message travels to the router. */
export interface ChannelConfig {
  readonly delayMs: number;
  readonly batchMs: number;
  readonly lossShare: number;
}

/** Delays outside the engines, and of every signal on its way to the router. */
export interface SignalConfig {
  readonly clientToRouterMs: number;
  readonly frontendMs: number;
  readonly frontendMicrosPerToken: number;
  readonly routerToWorkerMs: number;
  readonly workerToClientMs: number;
  readonly kvEvents: ChannelConfig;
  readonly firstToken: ChannelConfig;
  readonly growth: ChannelConfig;
  readonly ended: ChannelConfig;
}

/** What only live targets have; everything may be left out. */
export interface LiveConfig {
  /** Model that requests name; the first that the endpoint serves unless told. */
  readonly model?: string | undefined;
  readonly prompts?: "chat" | "completion" | undefined;
  /** Fields added to every request, such as `ignore_eos`. */
  readonly body?: Readonly<Record<string, unknown>> | undefined;
  /** Admin API of a Warmpath gateway: switches arms, names the workers. */
  readonly adminUrl?: string | undefined;
  /** Workers to be sampled: URL or NAME=URL of what serves /metrics. */
  readonly workers?: readonly string[] | undefined;
  /** Other pages of metrics: of a frontend, of DCGM's exporter. */
  readonly metrics?: readonly string[] | undefined;
  readonly hooks?: HookConfig | undefined;
  /** `by-arm`: all cells of one arm before the next; `interleaved`: arms in turn, and back (ABBA). */
  readonly order?: CellOrder | undefined;
  /** How long an arm may take to be ready. */
  readonly readySeconds?: number | undefined;
  readonly sampleSeconds?: number | undefined;
  /** Settings in which the arms are meant to differ; a `*` stands for anything. */
  readonly differs?: readonly string[] | undefined;
  /** What becomes of an arm that lacks what it needs: refused before it is measured, or measured and labelled. */
  readonly unproven?: "refuse" | "label" | undefined;
}

export type CellOrder = "by-arm" | "interleaved";

/** Commands of a shell, run in the folder of the experiment's file. */
export interface HookConfig {
  /** Makes an arm the one that serves. */
  readonly before_arm?: string | undefined;
  readonly after_arm?: string | undefined;
  /** Puts everything back; runs also after a failure or an interrupt. */
  readonly after_experiment?: string | undefined;
  /** Empties the caches of all workers. */
  readonly reset_caches?: string | undefined;
  /** Prints a line for each worker that is ready: its name and, after a space, what changes when it restarts. */
  readonly list_workers?: string | undefined;
  /** Prints the configuration in force, as JSON. */
  readonly describe_arm?: string | undefined;
}
