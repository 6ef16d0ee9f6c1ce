import { type ClientRequest, type IncomingMessage, request } from "node:http";
import { type AnswerKind, partsOf, type RequestHead, writeAnswerHead } from "../parts/nats-frames.ts";

export interface ServedRequestOptions {
  /** Where the worker's own HTTP server is. */
  readonly targetUrl: string;
  readonly maxBodyBytes: number;
  /** The largest piece that can be sent. */
  readonly partBytes: () => number;
  readonly send: (kind: AnswerKind, piece?: Uint8Array | string) => void;
  /** There is nothing more to come. */
  readonly over: () => void;
  readonly nowMs: () => number;
}

/** Headers that belong to one connection, not to the answer. */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "transfer-encoding",
  "trailer",
  "upgrade",
]);

/** One request at the worker's end: collected from its parts, asked of the HTTP server, and answered piece by piece. */
export class ServedRequest {
  readonly #head: RequestHead;
  readonly #options: ServedRequestOptions;
  readonly #body: Uint8Array[] = [];
  /** When the gateway last gave a sign of life. */
  heardMs: number;
  #missingBytes: number;
  #request: ClientRequest | undefined;
  #response: IncomingMessage | undefined;
  #isPaused = false;
  #isOver = false;

  constructor(head: RequestHead, options: ServedRequestOptions) {
    this.#head = head;
    this.#options = options;
    this.#missingBytes = head.bytes;
    this.heardMs = options.nowMs();
  }

  /** The next part of the body. */
  more(part: Uint8Array): void {
    if (this.#isOver || this.#request !== undefined) return;
    this.heardMs = this.#options.nowMs();
    const { bytes } = this.#head;
    const { maxBodyBytes } = this.#options;
    if (bytes > maxBodyBytes) {
      this.#refuse(`the body has ${bytes} bytes, more than ${maxBodyBytes}`);
      return;
    }
    this.#body.push(part);
    this.#missingBytes -= part.length;
    if (this.#missingBytes <= 0) this.#ask();
  }

  pause(): void {
    this.#isPaused = true;
    this.#response?.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#response?.resume();
  }

  /** Nobody wants the answer any more: frees the engine. */
  abort(): void {
    if (this.#isOver) return;
    this.#end();
    this.#request?.destroy();
  }

  #ask(): void {
    const { targetUrl } = this.#options;
    const body = Buffer.concat(this.#body);
    this.#body.length = 0;
    const headers = { ...this.#head.headers, "content-length": String(body.length) };
    try {
      // One after the other: by itself a path such as //host/ is an address of somebody else.
      this.#request = request(new URL(targetUrl.replace(/\/+$/, "") + this.#head.path), { method: "POST", headers });
    } catch (error) {
      this.#fail((error as Error).message);
      return;
    }
    this.#request.on("response", (response) => this.#answered(response));
    this.#request.on("error", (error) => this.#fail(error.message));
    this.#request.end(body);
  }

  #answered(response: IncomingMessage): void {
    this.#response = response;
    const { send, partBytes } = this.#options;
    const headers = Object.fromEntries(Object.entries(response.headers).filter(([name]) => !HOP_BY_HOP.has(name)));
    if (!this.#isOver) send("head", writeAnswerHead({ status: response.statusCode ?? 0, headers }));
    response.on("data", (chunk: Buffer) => {
      if (!this.#isOver) for (const part of partsOf(chunk, partBytes())) send("data", part);
    });
    response.on("end", () => {
      if (this.#isOver) return;
      send("end");
      this.#end();
    });
    response.on("error", (error) => this.#fail(error.message));
    response.on("close", () => this.#fail("the worker's server cut the connection"));
    if (this.#isPaused) response.pause();
  }

  #refuse(message: string): void {
    const { send } = this.#options;
    const error = { message, type: "invalid_request_error", code: "body_too_large" };
    send("head", writeAnswerHead({ status: 413, headers: { "content-type": "application/json" } }));
    send("data", JSON.stringify({ error }));
    send("end");
    this.#end();
  }

  #fail(reason: string): void {
    if (this.#isOver) return;
    this.#options.send("error", reason);
    this.#end();
  }

  #end(): void {
    this.#isOver = true;
    this.#options.over();
  }
}
