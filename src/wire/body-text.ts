import { collectBody } from "./body.ts";

const decoder = new TextDecoder();

/** The text of a body as it arrives; undefined if it is longer than allowed, and no more of it is read then. */
export async function textWithin(source: AsyncIterable<Uint8Array>, maxBytes: number): Promise<string | undefined> {
  const { bytes } = await collectBody(source, maxBytes);
  return bytes === undefined ? undefined : decoder.decode(bytes);
}
