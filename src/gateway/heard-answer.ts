import { fullBlocks, sequenceHashes } from "../core/hash.ts";
import type { KeptBlocks } from "../core/open-request.ts";
import type { RoutedRequest } from "../core/routed-request.ts";
import { type ContentListener, tellContent } from "../wire/answer-content.ts";
import { AnswerText } from "../wire/answer-text.ts";
import { joiningObstacle } from "../wire/openai-continuation.ts";
import { type AnsweredPrompt, withAnswer } from "./answered-prompt.ts";

/** What templates leave out when a model's own words come back to it in the next turn. */
const END_OF_THOUGHT = "</think>";

/** A prompt as it was offered. */
type PromptBlocks = KeptBlocks & Pick<RoutedRequest, "promptTokens">;

/**
 * Hears what a worker answers that sends no KV events. Its engine keeps what it generates, and the next turn brings it back as
 * a part of its prompt, so the blocks of prompt and answer together are what the router may expect there.
 */
export class HeardAnswer {
  readonly #prompt: AnsweredPrompt;
  readonly #own: PromptBlocks;
  /** Undefined if an answer to this prompt cannot come back in a prompt as it is. */
  readonly #text: AnswerText | undefined;

  constructor(prompt: AnsweredPrompt, own: PromptBlocks) {
    this.#prompt = prompt;
    this.#own = own;
    const { kind, body } = prompt;
    if (joiningObstacle(kind, body) === undefined) this.#text = new AnswerText(kind);
  }

  /** Who is to be told what a stream says. */
  get listener(): ContentListener | undefined {
    return this.#text;
  }

  /** Takes an answer in one piece. */
  hear(answer: Uint8Array): void {
    if (this.#text !== undefined) tellContent(answer, this.#text);
  }

  /** What the engine holds of prompt and answer now; undefined where that cannot be told, or not at once. */
  keptBlocks(): KeptBlocks | undefined {
    if (this.#text === undefined || this.#text.isMoreThanText) return undefined;
    const text = this.#text.read();
    if (text === undefined || text === "" || text.includes(END_OF_THOUGHT)) return undefined;
    const { promptTokens, sequence, blocks: ownBlocks } = this.#own;
    // No token is shorter than a byte: of a short answer it is often clear that it fills no block.
    if (fullBlocks(promptTokens + this.#text.length, this.#prompt.blockTokens) === ownBlocks) {
      return { sequence, blocks: ownBlocks };
    }
    const encoded = withAnswer(this.#prompt, { text, tokens: 0 })?.encoded;
    // Whoever waited for a promise would tell of the end too late.
    if (!(encoded instanceof Uint32Array)) return undefined;
    const { blockTokens, identity } = this.#prompt;
    // The last token was sampled and never read by the model, so nothing of it is kept.
    const blocks = fullBlocks(Math.max(0, encoded.length - 1), blockTokens);
    return { sequence: sequenceHashes(encoded.subarray(0, blocks * blockTokens), blockTokens, identity), blocks };
  }
}
