import type { GenerationKind } from "./openai-request.ts";
import { type TokenUsage, encodeUsage } from "./openai-usage.ts";

/** What all parts of one reply have in common. */
export interface ReplyHead {
  readonly kind: GenerationKind;
  readonly id: string;
  readonly model: string;
  readonly createdSeconds: number;
}

export type FinishReason = "stop" | "length";

/** The event a stream opens with; a text completion has none. */
export function encodeOpening(head: ReplyHead): string | undefined {
  if (head.kind === "completion") return undefined;
  return chunk(head, [{ index: 0, delta: { role: "assistant", content: "" }, finish_reason: null }]);
}

/** An event with the next piece of the answer. */
export function encodePiece(head: ReplyHead, text: string): string {
  const piece = head.kind === "chat" ? { delta: { content: text } } : { text };
  return chunk(head, [{ index: 0, ...piece, finish_reason: null }]);
}

/** The event that says why the answer ends here. */
export function encodeFinish(head: ReplyHead, reason: FinishReason): string {
  const nothing = head.kind === "chat" ? { delta: {} } : { text: "" };
  return chunk(head, [{ index: 0, ...nothing, finish_reason: reason }]);
}

/** The event with the usage, for clients that asked for it; it has no choices. */
export function encodeUsageEvent(head: ReplyHead, usage: TokenUsage): string {
  return chunk(head, [], usage);
}

/** The whole answer in one body. */
export function encodeReply(head: ReplyHead, text: string, reason: FinishReason, usage: TokenUsage): string {
  const answer = head.kind === "chat" ? { message: { role: "assistant", content: text } } : { text };
  const object = head.kind === "chat" ? "chat.completion" : "text_completion";
  return body(head, object, [{ index: 0, ...answer, logprobs: null, finish_reason: reason }], usage);
}

/** The answer to `GET /v1/models`. */
export function encodeModels(models: readonly string[]): string {
  return JSON.stringify({ object: "list", data: models.map(modelCard) });
}

/** The answer to `GET /v1/models/ID`. */
export function encodeModel(id: string): string {
  return JSON.stringify(modelCard(id));
}

/** An error in OpenAI's shape; `type` is its class, `code` names the case, `details` are ours. */
export interface ErrorFields {
  readonly message: string;
  readonly type: string;
  readonly code: string;
  readonly param?: string;
  readonly details?: object;
}

/** The body of an error, as clients of OpenAI expect it. */
export function encodeError(error: ErrorFields): string {
  const { message, type, code, param, details } = error;
  return JSON.stringify({ error: { message, type, param: param ?? null, code, ...(details && { details }) } });
}

function modelCard(id: string): object {
  return { id, object: "model", created: 0, owned_by: "warmpath" };
}

function chunk(head: ReplyHead, choices: readonly object[], usage?: TokenUsage): string {
  return body(head, head.kind === "chat" ? "chat.completion.chunk" : "text_completion", choices, usage);
}

function body(head: ReplyHead, object: string, choices: readonly object[], usage?: TokenUsage): string {
  const { id, model, createdSeconds: created } = head;
  return JSON.stringify({ id, object, created, model, choices, ...(usage && { usage: encodeUsage(usage) }) });
}
