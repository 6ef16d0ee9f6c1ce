/**
 * The alphabet in which byte-level vocabularies are written: printable Latin-1 characters stand for their own byte, the other
 * bytes for characters from U+0100 on, in order. It is GPT-2's, and every byte-level tokenizer.json since uses it.
 */
export const BYTE_CHARACTERS: readonly string[] = byteCharacters();

function byteCharacters(): string[] {
  let shifted = 0x100;
  return Array.from({ length: 256 }, (_, byte) => {
    const isPrintable = (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte !== 0xad);
    return String.fromCharCode(isPrintable ? byte : shifted++);
  });
}
