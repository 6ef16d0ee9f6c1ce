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
    request.on("data", (chunk: Buffer) => {
      length += chunk.length;
      if (length <= maxBytes) chunks.push(chunk);
      else {
        chunks.length = 0;
        request.pause();
        resolve({ kind: "too-large" });
      }
    });
    request.on("end", () => resolve({ kind: "read", bytes: joinBytes(chunks, length) }));
    request.on("close", () => resolve({ kind: "gone" }));
    request.on("error", () => resolve({ kind: "gone" }));
  });
}
