/** Cuts text into the pieces that are merged on their own: a word, a number, a run of white space. */
export interface Splitter {
  /** Where the piece that starts at `from` ends; `end` counts as the end of the text. */
  pieceEnd(text: string, from: number, end: number): number;
  /**
   * Whether a letter before a space always ends a piece, and nothing after it changes the pieces before: then a text cut there
   * has the tokens of its parts.
   */
  readonly cutsAfterWords: boolean;
}
