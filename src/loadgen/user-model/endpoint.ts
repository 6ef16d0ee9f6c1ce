import { Pool } from "undici";
import { field } from "../../wire/openai-usage.ts";
import { authorization, endpointOf } from "../endpoint.ts";
import type { ReadAnswer, UserModel } from "./types.ts";

/** A small model that plays the user. */
export interface EndpointUserOptions {
  readonly url: string;
  readonly model: string;
  readonly apiKey?: string | undefined;
  readonly seed: number;
  /** Most tokens of a question; 96 unless told. */
  readonly maxTokens?: number | undefined;
  /** After so long the conversation goes on without it; 30 s unless told. */
  readonly timeoutMs?: number | undefined;
}

const ROLE =
  "You are a curious reader in a conversation with an expert. Read the expert's answer and ask exactly one follow-up question " +
  "about something it says. Reply with the question alone, in one to three sentences.";

/** A user played by any OpenAI-compatible endpoint. */
export class EndpointUser implements UserModel {
  readonly #pool: Pool;
  readonly #path: string;
  readonly #options: EndpointUserOptions;

  constructor(options: EndpointUserOptions) {
    const { origin, basePath } = endpointOf(options.url);
    this.#options = options;
    this.#pool = new Pool(origin, { headersTimeout: 0, bodyTimeout: 0, allowH2: false });
    this.#path = `${basePath}/v1/chat/completions`;
  }

  async followUp({ session, turn, topic, answer }: ReadAnswer, signal: AbortSignal): Promise<string> {
    const { model, apiKey, seed, maxTokens = 96, timeoutMs = 30_000 } = this.#options;
    const messages = [
      { role: "system", content: ROLE },
      { role: "user", content: `The conversation is about: ${topic}\n\nThe expert's answer:\n\n${answer}` },
    ];
    const body = JSON.stringify({ model, messages, max_tokens: maxTokens, seed: seed + 64 * session + turn });
    const response = await this.#pool.request({
      method: "POST",
      path: this.#path,
      headers: { "content-type": "application/json", ...authorization(apiKey) },
      body,
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
    });
    const text = await response.body.text();
    if (response.statusCode !== 200) throw new Error(`the user model answered with ${response.statusCode}`);
    const question = contentOf(JSON.parse(text));
    if (question === undefined) throw new Error("the user model said nothing");
    return question;
  }

  async close(): Promise<void> {
    await this.#pool.destroy();
  }
}

function contentOf(reply: unknown): string | undefined {
  const choices = field(reply, "choices");
  const first: unknown = Array.isArray(choices) ? choices[0] : undefined;
  const content = field(field(first, "message"), "content");
  return typeof content === "string" && content.trim() !== "" ? content.trim() : undefined;
}
