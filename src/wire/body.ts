/** The bytes of a body, or the fact that it is longer than allowed. */
export type CollectedBody =
  | { readonly bytes: Uint8Array; readonly isTooLarge: false }
  | { readonly bytes?: undefined; readonly isTooLarge: true };

/** Collects a body as it arrives; stops reading as soon as it is too large. */
export async function collectBody(source: AsyncIterable<Uint8Array>, maxBytes: number): Promise<CollectedBody> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of source) {
    length += chunk.length;
    if (length > maxBytes) return { isTooLarge: true };
    chunks.push(chunk);
  }
  return { bytes: joinBytes(chunks, length), isTooLarge: false };
}

/** Several pieces as one; a single piece is not copied. */
export function joinBytes(chunks: readonly Uint8Array[], length: number): Uint8Array {
  if (chunks.length === 1) return chunks[0];
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}

/** Made once: making one costs more than decoding a short body. */
const decoder = new TextDecoder("utf-8", { fatal: true });

/** The JSON in a body; undefined if there is none, since JSON itself cannot be undefined. */
export function jsonOf(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(decoder.decode(bytes));
  } catch {
    return undefined;
  }
}
