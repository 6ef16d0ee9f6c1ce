/** The OpenAI-compatible front of the router. */
export type {
  AttemptEnd,
  AttemptFault,
  DecidedRequest,
  Decider,
  OfferedRequest,
  Placement,
  Readiness,
} from "./decider.ts";
export { DEFAULT_LIMITS, type GatewayLimits } from "./limits.ts";
export { LocalDecider, type LocalDeciderOptions } from "./local-decider.ts";
export { monotonicClock } from "./monotonic-clock.ts";
export type { GatewayErrorCode } from "./openai-errors.ts";
export { Gateway, type GatewayOptions } from "./server.ts";
export { type ListedWorker, WorkerDirectory } from "./worker-directory.ts";
