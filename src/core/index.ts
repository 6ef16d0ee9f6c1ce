/** `warmpath/core`: the pure routing core. Give it time and chance; it decides, explains and accounts. */
export { ACCOUNTS, Accounts, type Account, type Accounting } from "./accounts.ts";
export {
  DEFAULT_WATERMARKS,
  type AdmissionMode,
  type AdmissionRules,
  type QueueLimits,
  type ShedCode,
  type ShedReason,
  type Watermarks,
} from "./admission/types.ts";
export { NS_PER_MS, NS_PER_SECOND, type Clock, type Nanoseconds } from "./clock.ts";
export type { Effect, Hold, Place, Replay, Resync, Shed } from "./effects.ts";
export { WarmpathError, type ErrorCode } from "./errors.ts";
export { Fleet, replicaName } from "./fleet.ts";
export {
  NO_IDENTITY,
  ROOT_HI,
  ROOT_LO,
  addMultimodalKeys,
  chainHashes,
  fullBlocks,
  hashBlocks,
  hashSeed,
  hashText,
  sequenceHashes,
  type BlockIdentity,
  type HashSeed,
  type MultimodalKey,
} from "./hash.ts";
export { EventFeed, type FeedCounts, type FeedRequest, type FeedSink, type FeedState } from "./kv-index/event-feed.ts";
export { KvIndex, type KvIndexOptions } from "./kv-index/kv-index.ts";
export { NaiveIndex } from "./kv-index/naive-index.ts";
export type {
  FeedCapabilities,
  KvChange,
  KvEvent,
  KvEventBody,
  KvEvidence,
  KvIndexStats,
  Match,
  ReplicaSnapshot,
  SnapshotRun,
} from "./kv-index/types.ts";
export { DrainRates } from "./load/drain-rates.ts";
export type { LoadDescription, ReportedLoad } from "./load/load-description.ts";
export { LoadModel } from "./load/load-model.ts";
export { candidateView, type CandidateRow, type RequestRow } from "./policy/candidate-view.ts";
export { POLICIES, createPolicy } from "./policy/registry.ts";
export type {
  CandidateCost,
  CandidateView,
  Choice,
  CostTerm,
  Explanation,
  ParameterSpec,
  Placement,
  Policy,
  PolicyDefinition,
  PolicyParameters,
  PolicySignal,
} from "./policy/types.ts";
export { DecisionLog, type DecisionLogOptions, type RecordDetail } from "./record/decision-log.ts";
export type { DecisionRecord, FilteredReplicas, RecordedCandidate } from "./record/decision-record.ts";
export { explainRecord, recordedView, type ExplainedDecision } from "./record/explain-record.ts";
export {
  TIERS,
  type LoadColumns,
  type ReplicaRole,
  type ReplicaSpec,
  type ReplicaState,
  type Tier,
} from "./replica.ts";
export { Rng } from "./rng.ts";
export type { RoutedRequest } from "./routed-request.ts";
export type { Continuation, Ending } from "./open-request.ts";
export { Router } from "./router.ts";
export type { AdmissionOptions, RouterOptions } from "./router-options.ts";
