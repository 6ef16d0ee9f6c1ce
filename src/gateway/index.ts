/** The OpenAI-compatible front of the router. */
export { Gateway, type GatewayOptions, type GatewayWorker } from "./server.ts";
export type { GatewayErrorCode } from "./openai-errors.ts";
export { monotonicClock } from "./monotonic-clock.ts";
