/** Load against an OpenAI-compatible endpoint: conversations on the wall clock, measured honestly. */
export {
  type ClientHealth,
  ClientHealthMonitor,
  HEALTH_LIMITS,
  type HealthVerdict,
  worstHealth,
} from "./client-health.ts";
export {
  type ConversationLoad,
  conversationLoad,
  type ConversationLoadOptions,
  type LoadPace,
} from "./conversation-load.ts";
export { LoadTotals, type LoadTotalsData } from "./load-totals.ts";
export { LoadMetrics } from "./metrics.ts";
export { firstModel } from "./models.ts";
export { ShareOfSupply } from "./share-of-supply.ts";
export { StarterPrompts } from "./starter-prompts.ts";
export { readStarters, type Starter } from "./starters.ts";
export { startLoad } from "./start-load.ts";
export { SymbolicPrompts } from "./symbolic-prompts.ts";
export type {
  CompletedAnswer,
  LoadOptions,
  LoadRun,
  LoadSource,
  LoadSummary,
  LoadTarget,
  PromptWriter,
  WrittenPrompt,
} from "./types.ts";
export { BuiltInUser } from "./user-model/built-in.ts";
export { EndpointUser } from "./user-model/endpoint.ts";
export type { ReadAnswer, UserModel } from "./user-model/types.ts";
