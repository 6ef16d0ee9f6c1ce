import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock } from "../core/clock.ts";
import type { PromptTokenizer } from "../tokenizer/types.ts";
import {
  type GenerationKind,
  type GenerationRequest,
  type PromptChat,
  parseGenerationRequest,
} from "../wire/openai-request.ts";
import { type Answer, AnswerMaker } from "./answer.ts";
import type { Engine, EngineListener } from "./engine.ts";
import type { FaultSwitches } from "./faults.ts";
import { readGenerationOptions } from "./generation-options.ts";
import { errorFields, readJson, refuse, statusOf, type WorkerErrorCode } from "./http-reply.ts";
import type { GenerationMeter, GenerationTiming } from "./metrics/generation-meter.ts";
import { ReplyWriter } from "./reply-writer.ts";

export interface GenerationSettings {
  readonly name: string;
  /** Names a request may call the model by; the first is the one that answers carry. */
  readonly models: readonly string[];
  readonly engine: Engine;
  readonly tokenizer: PromptTokenizer;
  readonly clock: Clock;
  /** Length of an answer to a request that sets no limit; one that does is answered up to it. */
  readonly answerTokens: number;
  /** Prompt and answer together at most. */
  readonly maxSequenceTokens: number;
  /** Requests under way at most, in the batch and waiting for it. */
  readonly maxRequests: number;
  readonly maxBodyBytes: number;
  readonly faults: FaultSwitches | undefined;
  readonly meter: GenerationMeter | undefined;
}

/** What a request comes to once it is understood. */
interface Understood {
  readonly wanted: GenerationRequest;
  readonly promptTokens: Uint32Array;
  readonly answer: Answer;
  /** Tokens that the answer may have, the one that ends it included. */
  readonly maxOutputTokens: number;
}

/** Serves the two endpoints that generate text, from the body to the last byte. */
export class Generation {
  readonly #settings: GenerationSettings;
  readonly #answers: AnswerMaker;
  readonly #underWay = new Set<ReplyWriter>();
  #replies = 0;
  #drained: Promise<void> | undefined;
  #idle: (() => void) | undefined;

  constructor(settings: GenerationSettings) {
    this.#settings = settings;
    this.#answers = new AnswerMaker(settings.tokenizer);
  }

  get isDraining(): boolean {
    return this.#drained !== undefined;
  }

  /** Takes no new requests from now on; resolves once none is under way. */
  drain(): Promise<void> {
    this.#drained ??= this.#underWay.size === 0 ? Promise.resolve() : new Promise((resolve) => (this.#idle = resolve));
    return this.#drained;
  }

  /** Ends what is under way with an error that says why. */
  abandon(reason: string): void {
    const error = errorFields("shutting_down", reason);
    for (const writer of this.#underWay) writer.failed(statusOf("shutting_down"), error);
  }

  async serve(kind: GenerationKind, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { name, models, engine, clock, meter } = this.#settings;
    const understood = await this.#understand(kind, request, response);
    if (understood === undefined) return;
    const { wanted, promptTokens, answer, maxOutputTokens } = understood;
    const writer = new ReplyWriter(response, {
      head: {
        kind,
        id: `${kind === "chat" ? "chatcmpl" : "cmpl"}-${name}-${++this.#replies}`,
        model: models[0],
        createdSeconds: Math.floor(Date.now() / 1000),
      },
      isStreaming: wanted.isStreaming,
      includesUsage: wanted.includesUsage,
      promptTokens: promptTokens.length,
      answer,
    });
    this.#underWay.add(writer);
    const { finishReason } = answer;
    const timing = meter?.begin(clock.nowNs(), { finishReason, promptTokens: promptTokens.length });
    const ticket = engine.submit(
      {
        promptTokens,
        answerTokens: answer.tokens,
        hasEndToken: answer.hasEndToken,
        maxOutputTokens,
        identity: wanted.cacheSalt === undefined ? {} : { cacheSalt: wanted.cacheSalt },
      },
      this.#listener(writer, timing),
    );
    response.on("close", () => {
      this.#underWay.delete(writer);
      ticket.cancel();
      timing?.aborted();
      if (this.#underWay.size === 0) this.#idle?.();
    });
    if (response.destroyed) ticket.cancel();
  }

  /** Reads a request and refuses what cannot be served. */
  async #understand(
    kind: GenerationKind,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<Understood | undefined> {
    const { models, tokenizer, answerTokens, maxBodyBytes, maxSequenceTokens } = this.#settings;
    const body = await readJson(request, response, maxBodyBytes);
    if (body === undefined || this.#turnsAway(response)) return undefined;
    const { request: wanted, problem } = parseGenerationRequest(kind, body.value);
    const own = readGenerationOptions(body.value);
    const wrong = problem ?? ("problem" in own ? own.problem : undefined);
    if (wrong !== undefined || wanted === undefined || "problem" in own) {
      refuse(response, "invalid_request", wrong?.message ?? "", { param: wrong?.param });
      return undefined;
    }
    if (!models.includes(wanted.model)) {
      refuse(response, "model_not_found", `no model ${wanted.model} is served here`, { param: "model" });
      return undefined;
    }
    const promptTokens = tokenizer.encode(wanted.prompt);
    const { prompt } = wanted;
    const continues = prompt.kind === "chat" && prompt.continuesFinalMessage === true && promptTokens.length > 0;
    const naturalTokens = continues ? Math.max(0, answerTokens - this.#saidTokens(prompt, promptTokens)) : answerTokens;
    const misfit = this.#misfit(promptTokens.length, wanted.maxOutputTokens ?? 1);
    if (misfit !== undefined) {
      refuse(response, misfit.code, misfit.message, { param: kind === "chat" ? "messages" : "prompt" });
      return undefined;
    }
    // Whoever sets no limit has the rest of the sequence as one, as in real engines.
    const room = maxSequenceTokens - promptTokens.length;
    const limit = wanted.maxOutputTokens ?? (naturalTokens < room ? undefined : room);
    const answer = this.#answers.make({
      promptTokens,
      isContinuation: continues || kind === "completion",
      limit,
      naturalTokens,
      stop: own.options.stop,
      seed: own.options.seed,
    });
    return { wanted, promptTokens, answer, maxOutputTokens: limit ?? answerTokens + 1 };
  }

  /** Tokens of the answer that a chat already ends with. */
  #saidTokens(prompt: PromptChat, promptTokens: Uint32Array): number {
    const { continuesFinalMessage: _, ...chat } = prompt;
    const asked = this.#settings.tokenizer.encode({ ...chat, messages: chat.messages.slice(0, -1) });
    return promptTokens.length - asked.length;
  }

  #turnsAway(response: ServerResponse): boolean {
    const { faults, maxRequests } = this.#settings;
    const status = faults?.current.refuse ?? undefined;
    if (status !== undefined) refuse(response, "fault", "refused because the fault switch says so", { status });
    else if (this.isDraining) refuse(response, "shutting_down", "the worker is shutting down");
    else if (this.#underWay.size >= maxRequests) {
      refuse(response, "queue_full", `${maxRequests} requests are under way, and no more may wait`);
    } else return false;
    return true;
  }

  /** Why a prompt and an answer of these lengths cannot be served, if so. */
  #misfit(prompt: number, output: number): { readonly code: WorkerErrorCode; readonly message: string } | undefined {
    const { maxSequenceTokens } = this.#settings;
    if (prompt === 0) return { code: "invalid_request", message: "the prompt has no tokens" };
    if (prompt + output <= maxSequenceTokens) return undefined;
    const sum = `the prompt has ${prompt} tokens and the answer may have ${output}`;
    const message = `${sum}, together more than the ${maxSequenceTokens} of a sequence`;
    return { code: "context_length_exceeded", message };
  }

  #listener(writer: ReplyWriter, timing: GenerationTiming | undefined): EngineListener {
    const { clock, faults } = this.#settings;
    return {
      refused: (reason) => {
        timing?.refused();
        writer.failed(statusOf("request_too_large"), errorFields("request_too_large", reason));
      },
      grew: (tokens) => {
        timing?.grew(tokens, clock.nowNs());
        writer.grew(tokens);
        if (faults === undefined) return;
        faults.streamed(tokens);
        const cutAt = faults.current["cut-stream"];
        if (cutAt === null || writer.written < cutAt) return;
        // Before the engine, which does not know of it, says that the answer is whole.
        timing?.aborted();
        writer.cut();
      },
      finished: (cachedTokens, queuedNs) => {
        timing?.finished(clock.nowNs(), queuedNs);
        writer.finished(cachedTokens);
      },
    };
  }
}
