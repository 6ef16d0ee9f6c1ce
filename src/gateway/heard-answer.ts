import { fullBlocks, sequenceHashes } from "../core/hash.ts";
import type { KeptBlocks } from "../core/open-request.ts";
import { AnswerText, charactersOf, saysMoreThanText } from "../wire/answer-text.ts";
import { joiningObstacle } from "../wire/openai-continuation.ts";
import { type AnsweredPrompt, withAnswer } from "./answered-prompt.ts";

/** What templates leave out when a model's own words come back to it in the next turn. */
const END_OF_THOUGHT = "</think>";

/** Events are gathered before they are looked at: one by one, looking at them would cost more than passing them on. */
const GATHERED_BYTES = 8 * 1024;
const NOTHING: Buffer = Buffer.alloc(0);

/**
 * Hears what a worker answers that sends no KV events. Its engine keeps what it generates, and the next turn brings it back as
 * a part of its prompt, so the blocks of prompt and answer together are what the router may expect there.
 */
export class HeardAnswer {
  readonly #prompt: AnsweredPrompt;
  /** Undefined once the answer cannot come back in a prompt as it is. */
  #text: AnswerText | undefined;
  /** What was heard and not listened to yet. */
  #heard: Buffer = NOTHING;
  #heardBytes = 0;

  constructor(prompt: AnsweredPrompt) {
    this.#prompt = prompt;
    const { kind, body } = prompt;
    if (joiningObstacle(kind, body) === undefined) this.#text = new AnswerText(kind);
  }

  /** Takes whole events of a stream, or a whole answer. */
  hear(bytes: Uint8Array): void {
    if (this.#text === undefined) return;
    if (this.#heardBytes + bytes.length > this.#heard.length) {
      this.#listen();
      if (bytes.length > this.#heard.length) this.#heard = Buffer.allocUnsafe(Math.max(GATHERED_BYTES, bytes.length));
    }
    this.#heard.set(bytes, this.#heardBytes);
    this.#heardBytes += bytes.length;
  }

  /** What the engine holds of prompt and answer now; undefined where that cannot be told, or not at once. */
  keptBlocks(): KeptBlocks | undefined {
    this.#listen();
    const text = this.#text?.read();
    if (text === undefined || text === "" || text.includes(END_OF_THOUGHT)) return undefined;
    const encoded = withAnswer(this.#prompt, { text, tokens: 0 })?.encoded;
    // Whoever waited for a promise would tell of the end too late.
    if (!(encoded instanceof Uint32Array)) return undefined;
    const { blockTokens, identity } = this.#prompt;
    // The last token was sampled and never read by the model, so nothing of it is kept.
    const blocks = fullBlocks(Math.max(0, encoded.length - 1), blockTokens);
    return { sequence: sequenceHashes(encoded.subarray(0, blocks * blockTokens), blockTokens, identity), blocks };
  }

  #listen(): void {
    const bytes = this.#heard.subarray(0, this.#heardBytes);
    this.#heardBytes = 0;
    const characters = charactersOf(bytes);
    if (saysMoreThanText(characters)) this.#text = undefined;
    else this.#text?.add(bytes, characters);
  }
}
