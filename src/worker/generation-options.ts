import { field } from "../wire/openai-usage.ts";
import type { RequestProblem } from "../wire/openai-request.ts";

/** Fields of a request that matter to an engine and not to a router. */
export interface GenerationOptions {
  readonly stop: readonly string[];
  /** Whoever asks the same with another seed gets another answer. */
  readonly seed: number;
}

const MOST_STOPS = 16;

/** Reads them, or says what is wrong with the first that cannot be used. */
export function readGenerationOptions(
  body: unknown,
): { readonly options: GenerationOptions } | { readonly problem: RequestProblem } {
  const open = continuationProblem(body);
  if (open !== undefined) return { problem: { param: "continue_final_message", message: open } };
  const choices = field(body, "n") ?? 1;
  if (choices !== 1) return { problem: { param: "n", message: "n: must be 1; send a request for each choice" } };
  const given = field(body, "stop") ?? [];
  const stop: readonly unknown[] = Array.isArray(given) ? given : [given];
  if (stop.length > MOST_STOPS || !stop.every((text) => typeof text === "string" && text !== "")) {
    const message = `stop: must be a text that is not empty, or up to ${MOST_STOPS} of them`;
    return { problem: { param: "stop", message } };
  }
  const seed = field(body, "seed") ?? 0;
  if (!Number.isSafeInteger(seed)) return { problem: { param: "seed", message: "seed: must be a whole number" } };
  return { options: { stop: stop as readonly string[], seed: seed as number } };
}

/** What is wrong with the wish to have the last message continued, if it is one. */
function continuationProblem(body: unknown): string | undefined {
  if (field(body, "continue_final_message") !== true) return undefined;
  if (field(body, "add_generation_prompt") === true) {
    return "continue_final_message: not together with add_generation_prompt";
  }
  const messages = field(body, "messages");
  const last: unknown = Array.isArray(messages) ? messages.at(-1) : undefined;
  const isAnswer = field(last, "role") === "assistant" && typeof field(last, "content") === "string";
  return isAnswer ? undefined : "continue_final_message: the last message must be a text of the assistant's";
}
