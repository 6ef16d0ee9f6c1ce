import type { IncomingMessage } from "node:http";
import { BodyPieces } from "../wire/body-pieces.ts";
import { BytesInTurn } from "./bytes-in-turn.ts";

const CONTINUE = /(?:^|,)\s*100-continue\s*(?:$|,)/i;

/** What became of reading a body. */
export type ReadBody =
  | { readonly kind: "read"; readonly bytes: Uint8Array }
  | { readonly kind: "too-large" }
  | { readonly kind: "gone" };

/** Whether a body follows the headers. */
export function bringsBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

/** Whether a client waits to be told before it sends the body. One of an earlier version would take that for its answer. */
export function waitsToSend({ headers, httpVersion }: IncomingMessage): boolean {
  return httpVersion === "1.1" && CONTINUE.test(headers.expect ?? "");
}

/** Whether a body is too large by its own word. */
export function isTooLarge(request: IncomingMessage, maxBytes: number): boolean {
  return Number(request.headers["content-length"]) > maxBytes;
}

/** Reads a request's body to its end, or until it is too large or the client has left; one that says it is too large is not read. */
export function readBody(request: IncomingMessage, maxBytes: number): Promise<ReadBody> {
  if (isTooLarge(request, maxBytes)) return Promise.resolve({ kind: "too-large" });
  return new Promise((resolve) => {
    const pieces = new BodyPieces();
    const turns = new BytesInTurn(request);
    let tell: ((read: ReadBody) => void) | undefined = resolve;
    // A request lives as long as its answer, and its listeners with it: they must not hold the body, nor the promise of it.
    const settle = (read: ReadBody): void => {
      pieces.clear();
      tell?.(read);
      tell = undefined;
    };
    request.on("data", (chunk: Buffer) => {
      if (pieces.length + chunk.length > maxBytes) {
        request.pause();
        settle({ kind: "too-large" });
        return;
      }
      pieces.add(chunk);
      turns.took(chunk.length);
    });
    request.on("end", () => settle({ kind: "read", bytes: pieces.join() }));
    request.on("close", () => settle({ kind: "gone" }));
    request.on("error", () => settle({ kind: "gone" }));
  });
}
