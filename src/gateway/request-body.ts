import type { IncomingMessage } from "node:http";
import { joinBytes } from "../wire/body.ts";

/** What became of reading a body. */
export type ReadBody =
  | { readonly kind: "read"; readonly bytes: Uint8Array }
  | { readonly kind: "too-large" }
  | { readonly kind: "gone" };

/** Reads a request's body to its end, or until it is too large or the client has left. */
export function readBody(request: IncomingMessage, maxBytes: number): Promise<ReadBody> {
  return new Promise((resolve) => {
    const chunks: Uint8Array[] = [];
    let length = 0;
    let tell: ((read: ReadBody) => void) | undefined = resolve;
    // A request lives as long as its answer, and its listeners with it: they must not hold the body, nor the promise of it.
    const settle = (read: ReadBody): void => {
      chunks.length = 0;
      tell?.(read);
      tell = undefined;
    };
    request.on("data", (chunk: Buffer) => {
      length += chunk.length;
      if (length <= maxBytes) chunks.push(chunk);
      else {
        request.pause();
        settle({ kind: "too-large" });
      }
    });
    request.on("end", () => settle({ kind: "read", bytes: joinBytes(chunks, length) }));
    request.on("close", () => settle({ kind: "gone" }));
    request.on("error", () => settle({ kind: "gone" }));
  });
}
