/**
 * Asking for the rest of an answer whose beginning the client already has. A text is continued by itself: the answer so far
 * becomes part of the prompt. A chat ends with the answer so far as a message that is still open, which vLLM and SGLang
 * continue on `continue_final_message`.
 */
import type { GenerationKind } from "./openai-request.ts";
import { field } from "./openai-usage.ts";

/** What a client has of an answer. */
export interface SaidSoFar {
  readonly text: string;
  readonly tokens: number;
}

/** Why the rest of an answer cannot be asked for; stable, for metrics and messages. */
export type ContinuationObstacle =
  /** Several answers at once, whose places in the stream are not known. */
  | "several-choices"
  /** Positions and sums that a second engine would begin anew. */
  | "logprobs"
  /** A grammar that a second engine would begin in the middle of. */
  | "constrained-output"
  /** The engine repeats the prompt, or the answer stands before a suffix. */
  | "echo-or-suffix"
  /** Tokens, to which no text can be added. */
  | "token-prompt"
  /** Cut to a length, or without the header of an answer. */
  | "unusual-prompt"
  /** Calls of tools have begun, of which the client has a part. */
  | "tool-calls"
  /** The model thought before it answered, and no message can hold that in every template. */
  | "reasoning";

type Body = Readonly<Record<string, unknown>>;

const CONSTRAINTS: readonly string[] = [
  "structured_outputs",
  "guided_json",
  "guided_regex",
  "guided_choice",
  "guided_grammar",
  "guided_decoding_backend",
  "json_schema",
  "regex",
  "ebnf",
  "structural_tag",
];

const LIMITS: readonly string[] = ["max_tokens", "max_completion_tokens"];

/** What in a request keeps its answer from being continued; undefined if nothing does. */
export function continuationObstacle(kind: GenerationKind, body: object): ContinuationObstacle | undefined {
  const given = (name: string): unknown => field(body, name) ?? undefined;
  const joining = joiningObstacle(kind, body);
  if (joining === "several-choices") return joining;
  const hasLogprobs = given("logprobs") !== undefined && given("logprobs") !== false;
  if (hasLogprobs || given("prompt_logprobs") !== undefined || given("top_logprobs") !== undefined) return "logprobs";
  return isConstrained(given) ? "constrained-output" : joining;
}

/** What in a request keeps the text of its answer from being put behind its prompt; undefined if nothing does. */
export function joiningObstacle(kind: GenerationKind, body: object): ContinuationObstacle | undefined {
  const given = (name: string): unknown => field(body, name) ?? undefined;
  const isMoreThanOne = (name: string): boolean => given(name) !== undefined && given(name) !== 1;
  if (isMoreThanOne("n") || isMoreThanOne("best_of") || given("use_beam_search") === true) return "several-choices";
  if (given("echo") === true || (given("suffix") ?? "") !== "") return "echo-or-suffix";
  if (given("truncate_prompt_tokens") !== undefined) return "unusual-prompt";
  return kind === "chat" ? chatObstacle(given) : textOf(given("prompt")) === undefined ? "token-prompt" : undefined;
}

/** Tokens that may still come; undefined where the client sets no limit. */
export function tokensLeft(body: object, { tokens }: SaidSoFar): number | undefined {
  const limits = LIMITS.map((name) => field(body, name)).filter((limit) => typeof limit === "number");
  return limits.length === 0 ? undefined : Math.max(0, Math.min(...limits) - tokens);
}

/** The body that asks for the rest; its request must have no obstacle, and tokens left. */
export function continuedBody(kind: GenerationKind, body: object, said: SaidSoFar): Body {
  const limits = Object.fromEntries(
    LIMITS.flatMap((name) => reduced(body, name, said.tokens, 1)).concat(reduced(body, "min_tokens", said.tokens, 0)),
  );
  // Nothing was said yet, so it is the same request again: engines need not understand how to continue nothing.
  if (said.text === "") return { ...body, ...limits };
  if (kind === "completion") return { ...body, ...limits, prompt: textOf(field(body, "prompt")) + said.text };
  const messages = field(body, "messages") as readonly Body[];
  const isOpenAlready = field(body, "continue_final_message") === true;
  const before = isOpenAlready ? messages.slice(0, -1) : messages;
  const last = isOpenAlready ? messages[messages.length - 1] : { role: "assistant", content: "" };
  return {
    ...body,
    ...limits,
    messages: [...before, { ...last, content: (last["content"] as string) + said.text }],
    continue_final_message: true,
    add_generation_prompt: false,
  };
}

function isConstrained(given: (name: string) => unknown): boolean {
  const format = field(given("response_format"), "type");
  const choice = given("tool_choice");
  return (
    (given("response_format") !== undefined && format !== "text") ||
    (choice !== undefined && choice !== "auto" && choice !== "none") ||
    CONSTRAINTS.some((name) => given(name) !== undefined)
  );
}

function chatObstacle(given: (name: string) => unknown): ContinuationObstacle | undefined {
  if (given("continue_final_message") !== true) {
    return given("add_generation_prompt") === false ? "unusual-prompt" : undefined;
  }
  const last: unknown = (given("messages") as readonly unknown[]).at(-1);
  const isOpenAnswer = field(last, "role") === "assistant" && typeof field(last, "content") === "string";
  return isOpenAnswer ? undefined : "unusual-prompt";
}

/** A prompt that is one text; undefined if it is anything else. */
function textOf(prompt: unknown): string | undefined {
  const only: unknown = Array.isArray(prompt) && prompt.length === 1 ? prompt[0] : prompt;
  return typeof only === "string" ? only : undefined;
}

function reduced(body: object, name: string, by: number, least: number): [string, number][] {
  const limit = field(body, name);
  return typeof limit === "number" ? [[name, Math.max(least, limit - by)]] : [];
}
