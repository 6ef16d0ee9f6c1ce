import type { BlockIdentity } from "../core/hash.ts";
import type { PromptTokens } from "../planes/tokens/types.ts";
import { type SaidSoFar, continuedBody } from "../wire/openai-continuation.ts";
import { type GenerationKind, parseGenerationRequest } from "../wire/openai-request.ts";

/** A prompt that an answer can be put behind. */
export interface AnsweredPrompt {
  readonly kind: GenerationKind;
  /** The body as the worker got it, but for the usage. */
  readonly body: object;
  readonly identity: BlockIdentity;
  readonly tokens: Pick<PromptTokens, "tokensOf">;
  readonly blockTokens: number;
}

/** A request for more of an answer, and the tokens of its prompt. */
export interface RequestWithAnswer {
  readonly body: object;
  readonly maxOutputTokens: number | undefined;
  readonly encoded: Uint32Array | Promise<Uint32Array>;
}

/** The prompt with what was said to it behind it; undefined if that is no prompt any more. */
export function withAnswer({ kind, body, tokens }: AnsweredPrompt, said: SaidSoFar): RequestWithAnswer | undefined {
  const continued = continuedBody(kind, body, said);
  const { request } = parseGenerationRequest(kind, continued);
  if (request === undefined) return undefined;
  const { maxOutputTokens, prompt } = request;
  return { body: continued, maxOutputTokens, encoded: tokens.tokensOf(prompt) };
}
