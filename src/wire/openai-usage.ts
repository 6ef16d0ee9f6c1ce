/** What a request cost in tokens, as OpenAI's `usage` has it. */
export interface TokenUsage {
  readonly promptTokens: number;
  readonly outputTokens: number;
  /** Prompt tokens found in the KV cache; undefined where the engine does not say. */
  readonly cachedTokens: number | undefined;
}

/** The usage in a parsed reply or event; undefined if there is none, or what is there is no usage. */
export function usageOf(reply: unknown): TokenUsage | undefined {
  const usage = field(reply, "usage");
  const promptTokens = count(field(usage, "prompt_tokens"));
  const outputTokens = count(field(usage, "completion_tokens"));
  if (promptTokens === undefined || outputTokens === undefined) return undefined;
  const cachedTokens = count(field(field(usage, "prompt_tokens_details"), "cached_tokens"));
  return { promptTokens, outputTokens, cachedTokens };
}

/** The usage as it goes over the wire. */
export function encodeUsage(usage: TokenUsage): object {
  return {
    prompt_tokens: usage.promptTokens,
    completion_tokens: usage.outputTokens,
    total_tokens: usage.promptTokens + usage.outputTokens,
    ...(usage.cachedTokens === undefined ? {} : { prompt_tokens_details: { cached_tokens: usage.cachedTokens } }),
  };
}

/** A field of a value that came from outside and may be anything. */
export function field(value: unknown, name: string): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  return (value as Readonly<Record<string, unknown>>)[name];
}

function count(value: unknown): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}
