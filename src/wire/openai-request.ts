import { isDeeperThan } from "./json-depth.ts";
import { field } from "./openai-usage.ts";

/** The two endpoints that generate text. */
export type GenerationKind = "chat" | "completion";

/** One message of a chat, reduced to what decides its tokens. */
export interface PromptMessage {
  readonly role: string;
  readonly content: string;
  /** The message as it came, where it has more than these two. */
  readonly source?: Readonly<Record<string, unknown>>;
}

/** A chat with what else a model's template makes tokens of. */
export interface PromptChat {
  readonly kind: "chat";
  readonly messages: readonly PromptMessage[];
  readonly tools?: readonly unknown[];
  /** `chat_template_kwargs` */
  readonly templateArguments?: Readonly<Record<string, unknown>>;
  readonly addsGenerationPrompt?: boolean;
  /** The last message is the beginning of the answer, to be continued: `continue_final_message`. */
  readonly continuesFinalMessage?: boolean;
}

/** What is to be continued: a chat, a text, or tokens that the client made itself. */
export type GenerationPrompt =
  | PromptChat
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "tokens"; readonly tokens: Uint32Array };

/** The fields of a request that routing needs; all others pass through unread. */
export interface GenerationRequest {
  readonly kind: GenerationKind;
  readonly model: string;
  readonly prompt: GenerationPrompt;
  readonly isStreaming: boolean;
  /** Whether the client asked for usage at the end of the stream. */
  readonly includesUsage: boolean;
  readonly maxOutputTokens: number | undefined;
  /** Separates caches of equal prompts, as vLLM's field of the same name does. */
  readonly cacheSalt: string | undefined;
}

/** What is wrong with a request, and in which field. */
export interface RequestProblem {
  readonly param: string;
  readonly message: string;
}

/** A request that was understood, or the first problem it has. */
export type ParsedGenerationRequest =
  | { readonly request: GenerationRequest; readonly problem?: undefined }
  | { readonly request?: undefined; readonly problem: RequestProblem };

/** More than any schema of a tool needs. Engines give up about here too, some of them less politely. */
const MOST_LEVELS = 256;

/** Reads a parsed body; bodies come from anybody, so nothing about them is trusted. */
export function parseGenerationRequest(kind: GenerationKind, body: unknown): ParsedGenerationRequest {
  if (typeof body !== "object" || body === null || Array.isArray(body)) return problem("body", "must be a JSON object");
  if (isDeeperThan(MOST_LEVELS, body))
    return problem("body", `must not be nested more than ${MOST_LEVELS} levels deep`);
  const model = field(body, "model");
  if (typeof model !== "string" || model === "") return problem("model", "must be the name of a model");
  const stream = field(body, "stream") ?? false;
  if (typeof stream !== "boolean") return problem("stream", "must be true or false");
  // Clients write null for what they leave out, also beside the older name of the same limit.
  const limitName = (field(body, "max_completion_tokens") ?? null) === null ? "max_tokens" : "max_completion_tokens";
  const limit = field(body, limitName) ?? undefined;
  // No token at all is what a completion asks for that only wants its prompt back, with the odds of its tokens.
  const least = kind === "completion" ? 0 : 1;
  if (limit !== undefined && !(typeof limit === "number" && Number.isSafeInteger(limit) && limit >= least)) {
    return problem(limitName, `must be a whole number of at least ${least}`);
  }
  const cacheSalt = field(body, "cache_salt") ?? undefined;
  if (cacheSalt !== undefined && typeof cacheSalt !== "string") return problem("cache_salt", "must be a string");
  const prompt = kind === "chat" ? chatPrompt(body) : completionPrompt(field(body, "prompt"));
  if (typeof prompt === "string") return problem(kind === "chat" ? "messages" : "prompt", prompt);
  const includesUsage = field(field(body, "stream_options"), "include_usage") === true;
  const maxOutputTokens = limit === undefined ? undefined : Math.max(1, limit);
  return { request: { kind, model, prompt, isStreaming: stream, includesUsage, maxOutputTokens, cacheSalt } };
}

/** The prompt, or what is wrong with it. */
function chatPrompt(body: object): GenerationPrompt | string {
  const messages = field(body, "messages");
  if (!Array.isArray(messages) || messages.length === 0) return "must be a list of at least one message";
  const read: PromptMessage[] = [];
  for (const message of messages as readonly unknown[]) {
    const role = field(message, "role");
    if (typeof role !== "string") return `message ${read.length} needs a role`;
    const content = messageText(message);
    if (content === undefined) return `message ${read.length} has content that is neither a string nor a list of parts`;
    const isPlain = Object.keys(message as object).length === 2 && typeof field(message, "content") === "string";
    read.push({ role, content, ...(!isPlain && { source: message as Record<string, unknown> }) });
  }
  return { kind: "chat", messages: read, ...templateFields(body) };
}

/** What is none of a template's business, or not what it should be, is left to the engine to judge. */
function templateFields(body: object): Omit<PromptChat, "kind" | "messages"> {
  const tools = field(body, "tools");
  const given = field(body, "chat_template_kwargs");
  return {
    ...(Array.isArray(tools) && { tools: tools as readonly unknown[] }),
    ...(typeof given === "object" && given !== null && { templateArguments: given as Record<string, unknown> }),
    ...(field(body, "add_generation_prompt") === false && { addsGenerationPrompt: false }),
    ...(field(body, "continue_final_message") === true && { continuesFinalMessage: true }),
  };
}

/** What is not text (images, tool calls) enters as its JSON, so that messages that differ in it never look alike. */
function messageText(message: unknown): string | undefined {
  const content = field(message, "content") ?? "";
  const calls = field(message, "tool_calls");
  const tail = calls === undefined ? "" : ` ${JSON.stringify(calls)}`;
  if (typeof content === "string") return content + tail;
  if (!Array.isArray(content)) return undefined;
  const parts = (content as readonly unknown[]).map((part) => {
    const text = field(part, "text");
    return typeof text === "string" ? text : JSON.stringify(part);
  });
  return parts.join("\n") + tail;
}

function completionPrompt(prompt: unknown): GenerationPrompt | string {
  if (typeof prompt === "string") return { kind: "text", text: prompt };
  if (!Array.isArray(prompt) || prompt.length === 0)
    return "must be a text, a list of tokens, or a list of one of those";
  const first: unknown = prompt[0];
  if (typeof first !== "number") {
    return prompt.length === 1
      ? completionPrompt(first)
      : "several prompts in one request are not supported; send one each";
  }
  const tokens = new Uint32Array(prompt.length);
  for (let i = 0; i < prompt.length; i++) {
    const token: unknown = prompt[i];
    if (typeof token !== "number" || token >>> 0 !== token) return `token ${i} must be a whole number below 2^32`;
    tokens[i] = token;
  }
  return { kind: "tokens", tokens };
}

function problem(param: string, rule: string): ParsedGenerationRequest {
  return { problem: { param, message: param === "body" ? `the body ${rule}` : `${param}: ${rule}` } };
}

const encoder = new TextEncoder();
const ASKED_FIRST: Uint8Array = encoder.encode('{"stream_options":{"include_usage":true},');
const OPEN_BRACE = 0x7b;

/**
 * The stream options of a client that does not ask for the usage, with it asked for. vLLM can send it with every event; that it
 * does only for who asks for the usage at the end, and there it could not be taken out again.
 */
export function usageAsked(options: unknown): object {
  const given: object = typeof options === "object" && options !== null ? options : {};
  const { continuous_usage_stats: _, ...others } = given as Readonly<Record<string, unknown>>;
  return { ...others, include_usage: true };
}

/**
 * The body of a streaming request with usage asked for. Bytes are put in front where that is enough, so that everything
 * else reaches the engine exactly as the client wrote it; only a body with other stream options is written anew. `take`
 * provides the memory for it.
 */
export function withUsageAsked(
  bytes: Uint8Array,
  body: object,
  take: (bytes: number) => Uint8Array = (count) => new Uint8Array(count),
): Uint8Array {
  const options = field(body, "stream_options");
  if (options !== undefined) {
    return encoder.encode(JSON.stringify({ ...body, stream_options: usageAsked(options) }));
  }
  return withFirst(ASKED_FIRST, bytes, take);
}

/**
 * The body with this salt and no other. A salt of the client's, even an empty one, is written over: of two fields of one name
 * engines take the last.
 */
export function withCacheSalt(bytes: Uint8Array, body: object, salt: string): Uint8Array {
  if ("cache_salt" in body) return encoder.encode(JSON.stringify({ ...body, cache_salt: salt }));
  const first = encoder.encode(`{"cache_salt":${JSON.stringify(salt)},`);
  return withFirst(first, bytes, (count) => new Uint8Array(count));
}

/** A body that is not empty, with something put in place of its opening brace. */
function withFirst(first: Uint8Array, bytes: Uint8Array, take: (bytes: number) => Uint8Array): Uint8Array {
  const rest = bytes.subarray(bytes.indexOf(OPEN_BRACE) + 1);
  const joined = take(first.length + rest.length);
  joined.set(first);
  joined.set(rest, first.length);
  return joined;
}
