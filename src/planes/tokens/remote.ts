import { Pool } from "undici";
import { ChatTemplate, type ChatTemplateSource } from "../../tokenizer/template/chat-template.ts";
import { isLongPrompt } from "../../tokenizer/long-prompt.ts";
import { TextChunkTokenizer } from "../../tokenizer/text-chunk-tokenizer.ts";
import type { TokenizerPrompt } from "../../tokenizer/types.ts";
import type { PromptTokens, TokenCounts } from "./types.ts";

/** Whose `/tokenize` it is: vLLM's takes chats, SGLang's only texts. */
export type TokenizeDialect = "vllm" | "sglang";

export interface RemoteTokensOptions {
  /** The engine's address, without `/tokenize`. */
  readonly url: string;
  readonly dialect: TokenizeDialect;
  /** The model's name as the engine knows it; without one the engine takes its own. */
  readonly model?: string;
  /** What the engine is sent as `authorization`, where it asks for a key; SGLang does so here as it does everywhere. */
  readonly authorization?: (() => string | undefined) | undefined;
  /** How chats are written; SGLang needs it. */
  readonly chatTemplate?: ChatTemplateSource;
  /** How long a prompt waits for its tokens. */
  readonly timeoutMs?: number;
  /** How long an engine that failed is not asked again. */
  readonly restMs?: number;
  readonly nowMs?: () => number;
}

type Promptable = Exclude<TokenizerPrompt, { kind: "tokens" }>;

const DEFAULT_TIMEOUT_MS = 2_000;
const DEFAULT_REST_MS = 5_000;
const CONNECTIONS = 16;

/**
 * Tokens from an engine's `/tokenize`: right for every model there is, at the price of a round trip with the whole prompt for
 * each request. While the engine cannot be asked, prompts get a guess by chunks of text, and so does one that it refuses.
 */
export class RemoteTokens implements PromptTokens {
  readonly fidelity = "exact";
  readonly areAskedFor = true;
  readonly #options: RemoteTokensOptions;
  readonly #pool: Pool;
  readonly #path: string;
  readonly #timeoutMs: number;
  readonly #template: ChatTemplate | undefined;
  readonly #guess = new TextChunkTokenizer();
  readonly #nowMs: () => number;
  #restsUntilMs = -Infinity;
  #guessed = 0;

  constructor(options: RemoteTokensOptions) {
    const { origin, pathname } = new URL(options.url);
    const timeoutMs = options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
    this.#options = options;
    this.#timeoutMs = timeoutMs;
    this.#path = `${pathname.replace(/\/$/, "")}/tokenize`;
    this.#pool = new Pool(origin, {
      connections: CONNECTIONS,
      connect: { timeout: timeoutMs },
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
    });
    this.#template = options.chatTemplate === undefined ? undefined : new ChatTemplate(options.chatTemplate);
    this.#nowMs = options.nowMs ?? ((): number => performance.now());
  }

  get counts(): TokenCounts {
    return { offloaded: 0, guessed: this.#guessed };
  }

  tokensOf(prompt: TokenizerPrompt): Uint32Array | Promise<Uint32Array> {
    if (prompt.kind === "tokens") return prompt.tokens;
    if (this.#nowMs() < this.#restsUntilMs) return this.#guessFor(prompt);
    const body = jsonText(this.#bodyFor(prompt));
    return body === undefined ? this.#guessFor(prompt) : this.#askOrGuess(prompt, body);
  }

  close(): Promise<void> {
    return this.#pool.destroy();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #askOrGuess(prompt: Promptable, body: string): Promise<Uint32Array> {
    try {
      const tokens = await this.#ask(body);
      if (tokens !== undefined) return tokens;
    } catch {
      this.#restsUntilMs = this.#nowMs() + (this.#options.restMs ?? DEFAULT_REST_MS);
    }
    return this.#guessFor(prompt);
  }

  /** The tokens; undefined where the engine will have nothing to do with this prompt, which says nothing about others. */
  async #ask(body: string): Promise<Uint32Array | undefined> {
    const authorization = this.#options.authorization?.();
    const { statusCode, body: answer } = await this.#pool.request({
      method: "POST",
      path: this.#path,
      headers: { "content-type": "application/json", ...(authorization !== undefined && { authorization }) },
      body,
      // Of all of it, the wait for a connection included: behind an engine that hangs the last would wait for everybody before it.
      signal: AbortSignal.timeout(this.#timeoutMs),
    });
    if (statusCode !== 200) {
      await answer.dump();
      if (isRefusal(statusCode)) return undefined;
      throw new Error(`status ${statusCode}`);
    }
    const { tokens } = (await answer.json()) as { tokens?: unknown };
    if (!Array.isArray(tokens) || !tokens.every((token) => Number.isInteger(token))) throw new Error("no tokens");
    return Uint32Array.from(tokens as number[]);
  }

  /** What to ask; undefined where the dialect has no words for it. */
  #bodyFor(prompt: Promptable): object | undefined {
    const { model, dialect } = this.#options;
    const named = model === undefined ? {} : { model };
    if (prompt.kind === "text") return { ...named, prompt: prompt.text, add_special_tokens: true };
    const { messages, tools, templateArguments, addsGenerationPrompt = true, continuesFinalMessage } = prompt;
    // Run here, a template that takes long would stall everybody's streams.
    const written = isLongPrompt(prompt) ? undefined : this.#template?.render(prompt);
    if (written !== undefined) return { ...named, prompt: written, add_special_tokens: false };
    if (dialect === "sglang") return undefined;
    return {
      ...named,
      messages: messages.map(({ role, content, source }) => source ?? { role, content }),
      add_generation_prompt: addsGenerationPrompt,
      ...(continuesFinalMessage && { continue_final_message: true }),
      ...(tools !== undefined && { tools }),
      ...(templateArguments !== undefined && { chat_template_kwargs: templateArguments }),
    };
  }

  #guessFor(prompt: Promptable): Uint32Array {
    this.#guessed++;
    return this.#guess.encode(prompt);
  }
}

/** As JSON; undefined where there is nothing to ask, or a client has nested it beyond all reason: that is not the engine's fault. */
function jsonText(body: object | undefined): string | undefined {
  try {
    return JSON.stringify(body);
  } catch {
    return undefined;
  }
}

/** Whether a status speaks of the request and not of the engine; 408 and 429 are those of one that cannot keep up. */
function isRefusal(status: number): boolean {
  return status >= 400 && status < 500 && status !== 408 && status !== 429;
}
