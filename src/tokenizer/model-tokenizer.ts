import { ByteBpe } from "./bpe/byte-bpe.ts";
import type { BpeDefinition } from "./bpe/definition.ts";
import { ChatTemplate, type ChatTemplateSource } from "./template/chat-template.ts";
import { type Outline, PassageTokenizer, joinTokens } from "./passages.ts";
import type { ChatPrompt, PromptTokenizer, TokenizerPrompt, WrittenPrompt } from "./types.ts";

export interface ModelTokenizerOptions {
  readonly definition: BpeDefinition;
  /** How chats are written; without one, as their texts one after another. */
  readonly chatTemplate?: ChatTemplateSource;
  /** Text whose tokens are kept, in characters. */
  readonly cacheChars?: number;
}

/** A prompt as far as its tokens are known. */
export interface PromptOutline extends Outline {
  /** Whether it is text with the model's own frame around it, which chats have from their template. */
  readonly isFramed: boolean;
}

/** Tokens as the engine of a model makes them: its chat template, its vocabulary. */
export class ModelTokenizer implements PromptTokenizer {
  readonly definition: BpeDefinition;
  readonly #passages: PassageTokenizer;
  readonly #template: ChatTemplate | undefined;

  constructor({ definition, chatTemplate, cacheChars }: ModelTokenizerOptions) {
    this.definition = definition;
    this.#passages = new PassageTokenizer(new ByteBpe(definition), cacheChars);
    this.#template = chatTemplate === undefined ? undefined : new ChatTemplate(chatTemplate);
  }

  encode(prompt: TokenizerPrompt): Uint32Array {
    if (prompt.kind === "tokens") return prompt.tokens;
    const isFramed = prompt.kind === "text";
    return this.complete({ ...this.#passages.outline(this.#textOf(prompt)), isFramed });
  }

  /**
   * What is known of a prompt's tokens; `missing` is to be tokenized by `ByteBpe.encodePlain`, here or elsewhere. Undefined for
   * a prompt with more than so many scraps.
   */
  outline(prompt: WrittenPrompt, mostScraps: number): PromptOutline | undefined {
    const outline = this.#passages.outlineWithin(mostScraps, this.#textOf(prompt));
    return outline && { ...outline, isFramed: prompt.kind === "text" };
  }

  /** The tokens of an outlined prompt, with those of its missing passages, or after making them. */
  complete(
    outline: PromptOutline,
    missing: readonly Uint32Array[] = this.#passages.encodeMissing(outline),
  ): Uint32Array {
    const tokens = this.#passages.complete(outline, missing);
    const { textPrefix, textSuffix } = this.definition;
    if (!outline.isFramed || textPrefix.length + textSuffix.length === 0) return tokens;
    return joinTokens([Uint32Array.from(textPrefix), tokens, Uint32Array.from(textSuffix)]);
  }

  #textOf(prompt: WrittenPrompt): string {
    return prompt.kind === "text" ? prompt.text : this.#written(prompt);
  }

  /** A chat that the template refuses will be refused by the engine too; until then any tokens will do. */
  #written(prompt: ChatPrompt): string {
    return (
      this.#template?.render(prompt) ?? prompt.messages.map(({ role, content }) => `${role}\n${content}\n`).join("")
    );
  }
}
