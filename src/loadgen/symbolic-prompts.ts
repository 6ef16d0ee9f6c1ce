import { commonPrefixTokens, type Prompt } from "../workload/prompt.ts";
import { promptText } from "../workload/prompt-content.ts";
import type { WorkloadRequest } from "../workload/request.ts";
import { promptWithAnswer } from "../workload/session-run.ts";
import type { CompletedAnswer, PromptWriter, WrittenPrompt } from "./types.ts";

interface History {
  /** What has been said, as the workload knows it. */
  readonly prompt: Prompt;
  /** And as JSON: messages, or a text without its quotes. */
  readonly json: string;
}

/**
 * Writes the prompts of src/workload as text of one common word per token: the same segments that the twin hashes. What
 * an engine answers is sent again as it came, in the place of the segment that the twin has for it.
 */
export class SymbolicPrompts implements PromptWriter {
  readonly #seed: number;
  readonly #kind: WrittenPrompt["kind"];
  readonly #histories = new Map<number, History>();

  /** `seed` is that of the workload's content. A completion has exactly the tokens of the plan; a chat some for its roles. */
  constructor(seed: number, kind: WrittenPrompt["kind"] = "chat") {
    this.#seed = seed;
    this.#kind = kind;
  }

  write(request: WorkloadRequest): WrittenPrompt {
    const before = this.#historyOf(request);
    const text = promptText(request.prompt, this.#seed, before?.prompt.tokens ?? 0);
    const json = this.#join(before?.json, this.#kind === "chat" ? message("user", quoted(text)) : quoted(text));
    if (!request.isLastTurn) this.#histories.set(request.session, { prompt: request.prompt, json });
    return { kind: this.#kind, json: this.#kind === "chat" ? `[${json}]` : `"${json}"` };
  }

  needsAnswer(request: WorkloadRequest): boolean {
    return !request.isLastTurn;
  }

  answered(request: WorkloadRequest, { escapedText, outputTokens }: CompletedAnswer): void {
    const before = this.#histories.get(request.session);
    if (before === undefined) return;
    const said = this.#kind === "chat" ? `,${message("assistant", escapedText)}` : escapedText;
    const prompt = promptWithAnswer(request, outputTokens);
    this.#histories.set(request.session, { prompt, json: before.json + said });
  }

  forget(session: number): void {
    this.#histories.delete(session);
  }

  /** What was said before, if this turn goes on from it; a row of a trace brings its prompt whole. */
  #historyOf({ session, prompt }: WorkloadRequest): History | undefined {
    const history = this.#histories.get(session);
    if (history === undefined) return undefined;
    return commonPrefixTokens(history.prompt, prompt) === history.prompt.tokens ? history : undefined;
  }

  #join(before: string | undefined, now: string): string {
    if (before === undefined) return now;
    return this.#kind === "chat" ? `${before},${now}` : `${before} ${now}`;
  }
}

/** A message whose content is escaped already. */
export function message(role: "user" | "assistant", escapedText: string): string {
  return `{"role":"${role}","content":"${escapedText}"}`;
}

/** A text as it stands between the quotes of JSON. */
export function quoted(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}
