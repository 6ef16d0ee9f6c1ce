import { once } from "node:events";
import { type IncomingMessage, type Server, type ServerResponse, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { PromptTokenizer } from "../tokenizer/types.ts";
import { collectBody, jsonOf } from "../wire/body.ts";
import { encodeError, encodeModels } from "../wire/openai-reply.ts";
import { type GenerationKind, parseGenerationRequest } from "../wire/openai-request.ts";
import { answerWords } from "./answer.ts";
import type { Engine } from "./engine.ts";
import { ReplyWriter } from "./reply-writer.ts";

export interface SimulatedWorkerOptions {
  readonly name: string;
  readonly model: string;
  readonly engine: Engine;
  readonly tokenizer: PromptTokenizer;
  /** Length of an answer to a request that sets no limit; one that does is answered up to it. */
  readonly answerTokens?: number;
}

const MAX_BODY_BYTES = 64 * 1024 * 1024;
const DEFAULT_ANSWER_TOKENS = 64;

const ENDPOINTS: Readonly<Record<string, GenerationKind>> = {
  "POST /v1/chat/completions": "chat",
  "POST /v1/completions": "completion",
};

/** An OpenAI-compatible server in front of a simulated engine. */
export class SimulatedWorker {
  readonly #options: SimulatedWorkerOptions;
  readonly #server: Server;
  #replies = 0;

  constructor(options: SimulatedWorkerOptions) {
    this.#options = options;
    this.#server = createServer((request, response) => {
      this.#answer(request, response).catch((error: unknown) => response.destroy(error as Error));
    });
  }

  /** Starts to serve and returns the address; port 0 takes any free one. */
  async listen(port = 0, host = "127.0.0.1"): Promise<string> {
    this.#server.listen(port, host);
    await once(this.#server, "listening");
    return `http://${host}:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Takes no new connection and waits for the replies under way. */
  async close(): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    await closed;
  }

  /** Ends at once, as a crash would: connections are cut wherever they are. */
  async kill(): Promise<void> {
    const closed = this.close();
    this.#server.closeAllConnections();
    await closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#server.listening ? this.kill() : Promise.resolve();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const route = `${request.method} ${request.url}`;
    const { model } = this.#options;
    if (route === "GET /health") respond(response, 200, JSON.stringify({ status: "ok" }));
    else if (route === "GET /v1/models") respond(response, 200, encodeModels([model]));
    else if (ENDPOINTS[route] === undefined) refuse(response, 404, "not_found", `nothing is served at ${route}`);
    else await this.#generate(ENDPOINTS[route], request, response);
  }

  async #generate(kind: GenerationKind, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { engine, tokenizer, model, name } = this.#options;
    const body = await collectBody(request.iterator({ destroyOnReturn: false }), MAX_BODY_BYTES);
    if (body.isTooLarge) {
      refuse(response, 413, "body_too_large", `the body has more than ${MAX_BODY_BYTES} bytes`);
      return;
    }
    const { request: wanted, problem } = parseGenerationRequest(kind, jsonOf(body.bytes));
    if (problem !== undefined) {
      refuse(response, 400, "invalid_request", problem.message, problem.param);
      return;
    }
    const promptTokens = tokenizer.encode(wanted.prompt);
    const words = answerWords(
      promptTokens,
      wanted.maxOutputTokens ?? this.#options.answerTokens ?? DEFAULT_ANSWER_TOKENS,
    );
    const prefix = kind === "chat" ? "chatcmpl" : "cmpl";
    const createdSeconds = Math.floor(Date.now() / 1000);
    const writer = new ReplyWriter(response, {
      head: { kind, id: `${prefix}-${name}-${++this.#replies}`, model, createdSeconds },
      request: wanted,
      promptTokens: promptTokens.length,
      words,
      finishReason: wanted.maxOutputTokens === undefined ? "stop" : "length",
    });
    const job = {
      promptTokens,
      answerTokens: tokenizer.encode({ kind: "text", text: words.join(" ") }),
      identity: wanted.cacheSalt === undefined ? {} : { cacheSalt: wanted.cacheSalt },
    };
    const ticket = engine.submit(job, writer);
    response.on("close", () => ticket.cancel());
  }
}

function respond(response: ServerResponse, status: number, body: string): void {
  response.writeHead(status, { "content-type": "application/json" }).end(body);
}

function refuse(response: ServerResponse, status: number, code: string, message: string, param?: string): void {
  const error = { type: "invalid_request_error", code, message, ...(param !== undefined && { param }) };
  respond(response, status, encodeError(error));
}
