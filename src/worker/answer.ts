import { WarmpathError } from "../core/errors.ts";
import { mixPair } from "../core/rng.ts";
import type { PromptTokenizer } from "../tokenizer/types.ts";

const WORDS: readonly string[] = (
  "a cache that is warm answers soon because the blocks of the prompt are there and only what is new must be computed while " +
  "others wait in line for work they have done before on another machine"
).split(" ");

/** Keep apart what is remembered of a context and what is drawn from it. */
const CONTEXT_LANE = 0x636f6e74;
const WORD_LANE = 0x776f7264;

/** What is to be answered, and how long. */
export interface AnswerWish {
  readonly promptTokens: Uint32Array;
  /** Whether the answer stands by itself, as in a chat, or goes on in the middle of a text. */
  readonly isContinuation: boolean;
  /** Tokens at most; undefined lets the answer end by itself. */
  readonly limit: number | undefined;
  /** Tokens of an answer that ends by itself. */
  readonly naturalTokens: number;
  /** 0 unless the client gave one. */
  readonly seed?: number;
  /** The answer ends before the first of these texts that turns up in it. */
  readonly stop: readonly string[];
}

/** An answer before it is given. */
export interface Answer {
  /** Text that comes with each token; empty where a stop has cut it away. */
  readonly pieces: readonly string[];
  readonly tokens: Uint32Array;
  readonly finishReason: "stop" | "length";
  readonly hasEndToken: boolean;
}

/**
 * Makes answers up: always the same for the same prompt and seed, other ones for another. A word follows from all tokens before
 * it and nothing else, as in a model that is not left to chance, so whoever continues half an answer gets the other half. Every
 * word is one token, alone and after a space, so that an answer sent back in the next turn has the tokens it was cached with.
 */
export class AnswerMaker {
  readonly #words: readonly string[];
  readonly #spaced: readonly string[];
  readonly #opening: Uint32Array;
  readonly #following: Uint32Array;

  constructor(tokenizer: PromptTokenizer) {
    const encode = (text: string): Uint32Array => tokenizer.encode({ kind: "text", text });
    const words = WORDS.filter((word) => encode(word).length === 1 && encode(` ${word}`).length === 1);
    this.#words = words;
    this.#spaced = words.map((word) => ` ${word}`);
    this.#opening = Uint32Array.from(words, (word) => encode(word)[0]);
    this.#following = Uint32Array.from(this.#spaced, (word) => encode(word)[0]);
    const inTurn = words.map((_, i) => (i === 0 ? this.#opening[i] : this.#following[i]));
    if (words.length < 2 || String(encode(words.join(" "))) !== String(inTurn)) {
      throw new WarmpathError("WP_INVALID_INPUT", "the tokenizer does not keep words apart; no answer could be cached");
    }
  }

  make({ promptTokens, isContinuation, limit, naturalTokens, stop, seed: given = 0 }: AnswerWish): Answer {
    const count = limit ?? naturalTokens;
    let context = mixPair(CONTEXT_LANE, given);
    for (const token of promptTokens) context = mixPair(context, token);
    const pieces: string[] = [];
    const tokens = new Uint32Array(count);
    for (let i = 0; i < count; i++) {
      const word = mixPair(context, WORD_LANE) % this.#words.length;
      const isOpening = i === 0 && !isContinuation;
      pieces.push((isOpening ? this.#words : this.#spaced)[word]);
      const token = (isOpening ? this.#opening : this.#following)[word];
      tokens[i] = token;
      context = mixPair(context, token);
    }
    const isWhole = limit === undefined;
    const whole: Answer = { pieces, tokens, finishReason: isWhole ? "stop" : "length", hasEndToken: isWhole };
    return stop.length === 0 ? whole : (stoppedAt(whole, stop) ?? whole);
  }
}

/** The answer up to the first stop, which is generated and not shown; undefined if there is none in it. */
function stoppedAt({ pieces, tokens }: Answer, stop: readonly string[]): Answer | undefined {
  const text = pieces.join("");
  let start = Number.POSITIVE_INFINITY;
  let end = 0;
  for (const wanted of stop) {
    const at = text.indexOf(wanted);
    if (at < 0 || at >= start) continue;
    start = at;
    end = at + wanted.length;
  }
  if (end === 0) return undefined;
  const shown: string[] = [];
  for (let from = 0; from < end; from += pieces[shown.length - 1].length) {
    const piece = pieces[shown.length];
    shown.push(piece.slice(0, Math.max(0, start - from)));
  }
  return { pieces: shown, tokens: tokens.slice(0, shown.length), finishReason: "stop", hasEndToken: false };
}
