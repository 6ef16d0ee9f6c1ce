/** Codecs: OpenAI bodies, server-sent events, trace files. */
export { type CollectedBody, collectBody, joinBytes, jsonOf } from "./body.ts";
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
} from "./openai-request.ts";
export { type TokenUsage, usageOf } from "./openai-usage.ts";
export { SSE_DONE, sseEvent, SseScanner } from "./sse.ts";
