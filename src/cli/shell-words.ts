/** Words as a line that a shell takes apart into the same words. */
export function shellLine(words: readonly string[]): string {
  return words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : quoted(word))).join(" ");
}

/** Nothing is special between single quotes but their end. */
function quoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
