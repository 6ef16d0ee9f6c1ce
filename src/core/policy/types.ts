import type { Nanoseconds } from "../clock.ts";
import type { PrefillWork } from "../load/prefill-ledger.ts";
import type { LoadColumns } from "../replica.ts";

/**
 * All that a policy may look at when it chooses. One object is reused for every decision, and its columns are indexed by
 * replica; `candidates` lists the replicas that passed all filters. Nothing in it depends on the order of replicas except
 * the indices themselves, so a policy that only compares columns gives the same answer however workers are numbered.
 */
export interface CandidateView {
  readonly nowNs: Nanoseconds;
  readonly promptTokens: number;
  readonly promptBlocks: number;
  readonly blockTokens: number;
  /** Output length to plan for: the learned mean, bounded by what the client allows. */
  readonly expectedOutputTokens: number;
  /** 32-bit hash of the session, or of the prompt's first blocks where it has none. */
  readonly sessionKey: number;
  /** 32-bit hash of the prompt's first `blocks` full blocks, at least one. */
  prefixKey(blocks: number): number;
  /**
   * Leading prompt blocks that the replica surely has: an event confirmed them, or the prompts that brought them there have had
   * their first tokens.
   */
  settledBlocks(replica: number): number;
  /** 32 random bits drawn for this decision; the only source of chance a policy has. */
  readonly chance: number;
  /** Whether holding the request in the router's queue is possible. */
  readonly mayHold: boolean;

  readonly count: number;
  readonly candidates: Int32Array;

  /** 32-bit hash of the replica's name: the same however replicas are numbered. */
  readonly key: Uint32Array;
  /** Number of the decision that last chose the replica; 0 if none did. */
  readonly lastChosen: Float64Array;
  /** Leading prompt blocks held on the device, by confirmed or expected evidence. */
  readonly cachedBlocks: Int32Array;
  /** Of those, the ones an engine event confirmed without a break from the first. */
  readonly confirmedBlocks: Int32Array;
  /** Leading prompt blocks beyond `cachedBlocks` that a slower tier holds. */
  readonly hostBlocks: Int32Array;
  readonly diskBlocks: Int32Array;
  /** Leading prompt blocks that requests in flight on the replica already hold; filled for policies that ask for it. */
  readonly activePrefixBlocks: Int32Array;
  readonly load: LoadColumns;
}

export interface Placement {
  readonly kind: "place";
  readonly replica: number;
  /** The second best candidate, or -1 where there was only one. */
  readonly runnerUp: number;
  /** How much more the runner-up would have cost; 0 for a tie. */
  readonly margin: number;
  /** How many candidates had the lowest cost. */
  readonly tied: number;
}

/** `hold`: to wait in the router's queue, and be asked for again when something has changed. */
export type Choice = Placement | { readonly kind: "hold" } | { readonly kind: "none" };

export interface CostTerm {
  readonly name: string;
  readonly value: number;
}

/** One candidate's cost, taken apart: the terms add up to the cost. */
export interface CandidateCost {
  readonly replica: number;
  readonly cost: number;
  readonly terms: readonly CostTerm[];
}

export interface Explanation {
  /** The rule in one line, with the values of its knobs. */
  readonly rule: string;
  /** What the costs are counted in: `blocks`, `tokens × requests`, `ms`, … */
  readonly unit: string;
  readonly candidates: readonly CandidateCost[];
}

/** The load of a replica after the signal that speaks of it. */
export interface SignalledLoad {
  readonly inFlight: number;
  readonly decoding: number;
  readonly contextTokens: number;
}

/** What happened to a request, for policies that learn. Times are of the driver's clock. */
export type PolicySignal =
  /** The choice just made was carried out. */
  | { readonly kind: "placed"; readonly nowNs: Nanoseconds; readonly replica: number }
  | {
      readonly kind: "first-token";
      readonly nowNs: Nanoseconds;
      readonly replica: number;
      readonly sincePlacedNs: Nanoseconds;
      /** Those that came with it; where an answer came whole, the time is not that of its first one. */
      readonly tokens: number;
      readonly promptTokens: number;
      readonly prefillTokens: number;
      /** What the replica computed since the request was placed, its prompt included. */
      readonly meanwhile: PrefillWork;
      readonly load: SignalledLoad;
    }
  | {
      readonly kind: "grew";
      readonly nowNs: Nanoseconds;
      readonly replica: number;
      readonly tokens: number;
      readonly sinceLastNs: Nanoseconds;
      /** Prompts of others that the replica computed in that time. */
      readonly meanwhile: PrefillWork;
      readonly load: SignalledLoad;
    }
  | { readonly kind: "ended"; readonly nowNs: Nanoseconds; readonly replica: number; readonly outputTokens: number }
  | { readonly kind: "replica-reset"; readonly replica: number };

/**
 * A routing policy. `choose` and `explain` are pure functions of the view (and of what `observe` taught), so a stored
 * decision can be recomputed and taken apart when somebody asks. Lower cost is better.
 */
export interface Policy {
  readonly name: string;
  readonly parameters: PolicyParameters;
  /** True if `activePrefixBlocks` must be filled, which costs memory and time. */
  readonly usesActivePrefix: boolean;
  choose(view: CandidateView): Choice;
  /**
   * All beside the view that a choice depends on, for policies that learn: a copy is kept with the decision and given to
   * `explain` again, so that a decision can be taken apart however much was learned since. Asked again, it may be overwritten.
   */
  learned?(view: CandidateView): ArrayLike<number>;
  explain(view: CandidateView, learned?: ArrayLike<number>): Explanation;
  /** Hears what happens to requests; a policy that does not learn has no ears, and nothing is put together for it. */
  observe?(signal: PolicySignal): void;
}

export type PolicyParameters = Readonly<Record<string, number | string>>;

/** Describes one knob of a policy: validation, `--help` and docs are made from it. */
export type ParameterSpec =
  | {
      readonly kind: "number";
      readonly default: number;
      readonly minimum: number;
      readonly maximum: number;
      readonly about: string;
    }
  | { readonly kind: "choice"; readonly default: string; readonly choices: readonly string[]; readonly about: string };

/** What the registry knows of a policy; each policy file exports one. */
export interface PolicyDefinition {
  readonly name: string;
  readonly about: string;
  readonly parameters: Readonly<Record<string, ParameterSpec>>;
  create(parameters: PolicyParameters): Policy;
}
