/** Codecs: OpenAI bodies, server-sent events, KV events, engines' metrics, trace files. */
export { type CollectedBody, collectBody, joinBytes, jsonOf } from "./body.ts";
export { type EngineBatch, EngineDecoder } from "./kv-events/engine-decoder.ts";
export {
  encodeEngineBatch,
  type EngineBatchHead,
  type EngineChange,
  type EventShape,
  type StoredContent,
} from "./kv-events/engine-encoder.ts";
export {
  decodeKvEvent,
  decodeLoad,
  decodeSnapshot,
  encodeKvEvent,
  encodeLoad,
  encodeSnapshot,
} from "./kv-events/json-events.ts";
export {
  MOONCAKE_BLOCK_TOKENS,
  type MooncakeLine,
  type MooncakeRow,
  parseMooncakeLine,
  parseMooncakeTrace,
  writeMooncakeRow,
} from "./mooncake-trace.ts";
export {
  encodeError,
  encodeFinish,
  encodeModel,
  encodeModels,
  encodeOpening,
  encodePiece,
  encodeReply,
  encodeUsageEvent,
  type ErrorFields,
  type FinishReason,
  type ReplyHead,
} from "./openai-reply.ts";
export {
  type GenerationKind,
  type GenerationPrompt,
  type GenerationRequest,
  type ParsedGenerationRequest,
  parseGenerationRequest,
  type PromptMessage,
  type RequestProblem,
  withCacheSalt,
  withUsageAsked,
} from "./openai-request.ts";
export { type TokenUsage, usageOf } from "./openai-usage.ts";
export { SSE_DONE, sseEvent, SseScanner, type SseScannerOptions } from "./sse.ts";
export { engineLoadOf, parseSamples, type Sample } from "./prometheus-text.ts";
