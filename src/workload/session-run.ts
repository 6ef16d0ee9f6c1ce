import type { Nanoseconds } from "../core/clock.ts";
import { EMPTY_PROMPT, extendPrompt, type Prompt } from "./prompt.ts";
import type { SessionScript, WorkloadRequest } from "./request.ts";

/** One session under way: turns its script into requests, with the full history in each. */
export class SessionRun {
  readonly #script: SessionScript;
  #history: Prompt = EMPTY_PROMPT;
  #turn = 0;

  constructor(script: SessionScript) {
    this.#script = script;
  }

  get session(): number {
    return this.#script.session;
  }

  get turnsLeft(): number {
    return this.#script.turns.length - this.#turn;
  }

  /** Time the next turn waits after the end of the one before. */
  get thinkNs(): Nanoseconds {
    return this.#script.turns[this.#turn].thinkNs;
  }

  /** The next turn, to be sent at `arrivalNs`. */
  next(arrivalNs: Nanoseconds): WorkloadRequest {
    const { session, name, turns } = this.#script;
    const turn = this.#turn++;
    const planned = turns[turn];
    const prompt =
      planned.prompt.kind === "whole" ? planned.prompt.prompt : extendPrompt(this.#history, planned.prompt.segments);
    this.#history = prompt;
    return {
      id: planned.requestId,
      session,
      turn,
      isLastTurn: turn === turns.length - 1,
      sessionName: name,
      arrivalNs,
      promptTokens: prompt.tokens,
      outputTokens: planned.outputTokens,
      prompt,
      answerId: planned.answerId,
    };
  }

  /** Adds the answer to the history that the next turn sends again. */
  answered(request: WorkloadRequest, outputTokens: number): void {
    this.#history = promptWithAnswer(request, outputTokens);
  }
}

/** The prompt and what was answered to it: what an engine holds in its cache at the end of a request. */
export function promptWithAnswer(request: WorkloadRequest, outputTokens: number = request.outputTokens): Prompt {
  return extendPrompt(request.prompt, [{ id: request.answerId, tokens: outputTokens }]);
}
