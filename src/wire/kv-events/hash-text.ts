import { hashText } from "../../core/hash.ts";

/** Hashes as text, 16 hex digits each, one after the other: what people can compare and JSON can carry exactly. */
export function textOfHashes(hashes: Uint32Array): string {
  let text = "";
  for (let i = 0; i < hashes.length; i += 2) text += hashText(hashes[i], hashes[i + 1]);
  return text;
}

/** The hashes in such a text; undefined if it is not one. */
export function hashesOf(text: unknown): Uint32Array | undefined {
  if (typeof text !== "string" || text.length % 16 !== 0 || !HEXADECIMAL.test(text)) return undefined;
  const hashes = new Uint32Array(text.length / 8);
  for (let i = 0; i < hashes.length; i += 2) {
    hashes[i] = Number.parseInt(text.slice(8 * i + 8, 8 * i + 16), 16);
    hashes[i + 1] = Number.parseInt(text.slice(8 * i, 8 * i + 8), 16);
  }
  return hashes;
}

const HEXADECIMAL = /^[0-9a-f]*$/;
