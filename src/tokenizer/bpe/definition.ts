/** A token that is found in text as it stands, before anything is split. */
export interface AddedToken {
  readonly id: number;
  readonly content: string;
  /** Takes the white space before it along. */
  readonly stripsLeft: boolean;
  /** Takes the white space after it along. */
  readonly stripsRight: boolean;
  /** Looked for in normalized text, after the others. */
  readonly isNormalized: boolean;
}

export type NormalForm = "NFC" | "NFD" | "NFKC" | "NFKD";

/**
 * All that a byte-level BPE tokenizer is made of, as plain data: it can be sent to a thread, where the table stays shared.
 */
export interface BpeDefinition {
  /** For `MergeTable`. */
  readonly merges: Int32Array;
  /** The token of each byte; -1 where the vocabulary has none, which no text in UTF-8 may need. */
  readonly byteTokens: Int32Array;
  /** Tokens by their text in the byte alphabet, where whole words of the vocabulary are taken without merging. */
  readonly wholeWords: ReadonlyMap<string, number> | undefined;
  readonly normalForms: readonly NormalForm[];
  /** Patterns that split the text, one after another. */
  readonly patterns: readonly string[];
  readonly addedTokens: readonly AddedToken[];
  /** What stands before and after a text that is not a chat: a beginning-of-text token, for one. */
  readonly textPrefix: readonly number[];
  readonly textSuffix: readonly number[];
}
