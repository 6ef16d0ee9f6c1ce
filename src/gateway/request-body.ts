import type { IncomingMessage } from "node:http";
import { joinBytes } from "../wire/body.ts";

/** What became of reading a body. */
export type ReadBody =
  | { readonly kind: "read"; readonly bytes: Uint8Array }
  | { readonly kind: "too-large" }
  | { readonly kind: "gone" };

/** Bodies up to here are read as fast as they come. */
const HASTY_BYTES = 1024 * 1024;

/** Larger ones wait so long after so many bytes, in however small pieces these come. */
const PAUSE_MS = 1;
const BYTES_BETWEEN = 64 * 1024;

/**
 * A connection can bring megabytes faster than anybody else is served. Heard in turns it would still be most of what is done
 * until its end; with a pause it is a small part, and even a body at the limit comes in less than a second.
 */
function letOthersGo(request: IncomingMessage): void {
  request.pause();
  setTimeout(() => request.resume(), PAUSE_MS);
}

/** Whether a body follows the headers. */
export function bringsBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

/** Whether a body is too large by its own word. */
export function isTooLarge(request: IncomingMessage, maxBytes: number): boolean {
  return Number(request.headers["content-length"]) > maxBytes;
}

/** Reads a request's body to its end, or until it is too large or the client has left; one that says it is too large is not read. */
export function readBody(request: IncomingMessage, maxBytes: number): Promise<ReadBody> {
  if (isTooLarge(request, maxBytes)) return Promise.resolve({ kind: "too-large" });
  return new Promise((resolve) => {
    const chunks: Uint8Array[] = [];
    let length = 0;
    let pauseAt = HASTY_BYTES;
    let tell: ((read: ReadBody) => void) | undefined = resolve;
    // A request lives as long as its answer, and its listeners with it: they must not hold the body, nor the promise of it.
    const settle = (read: ReadBody): void => {
      chunks.length = 0;
      tell?.(read);
      tell = undefined;
    };
    request.on("data", (chunk: Buffer) => {
      length += chunk.length;
      if (length > maxBytes) {
        request.pause();
        settle({ kind: "too-large" });
        return;
      }
      chunks.push(chunk);
      if (length <= pauseAt) return;
      pauseAt = length + BYTES_BETWEEN;
      letOthersGo(request);
    });
    request.on("end", () => settle({ kind: "read", bytes: joinBytes(chunks, length) }));
    request.on("close", () => settle({ kind: "gone" }));
    request.on("error", () => settle({ kind: "gone" }));
  });
}
