import type { ServerResponse } from "node:http";
import {
  type FinishReason,
  type ReplyHead,
  encodeFinish,
  encodeOpening,
  encodePiece,
  encodeReply,
  encodeUsageEvent,
} from "../wire/openai-reply.ts";
import type { GenerationRequest } from "../wire/openai-request.ts";
import { SSE_DONE, sseEvent } from "../wire/sse.ts";
import type { EngineListener } from "./engine.ts";

/** What a reply consists of, before the engine has said when. */
export interface PlannedReply {
  readonly head: ReplyHead;
  readonly request: GenerationRequest;
  readonly promptTokens: number;
  readonly words: readonly string[];
  readonly finishReason: FinishReason;
}

/** Writes an answer to a client as the engine produces it: token by token in a stream, else all at the end. */
export class ReplyWriter implements EngineListener {
  readonly #response: ServerResponse;
  readonly #planned: PlannedReply;
  #cachedTokens = 0;

  constructor(response: ServerResponse, planned: PlannedReply) {
    this.#response = response;
    this.#planned = planned;
  }

  prefilled(cachedTokens: number): void {
    this.#cachedTokens = cachedTokens;
    const { head, request } = this.#planned;
    if (!request.isStreaming) return;
    this.#response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
    const opening = encodeOpening(head);
    if (opening !== undefined) this.#response.write(sseEvent(opening));
  }

  token(index: number): void {
    const { head, request, words } = this.#planned;
    if (request.isStreaming) this.#response.write(sseEvent(encodePiece(head, pieceAt(words, index))));
  }

  finished(): void {
    const { head, request, words, promptTokens, finishReason } = this.#planned;
    const usage = { promptTokens, outputTokens: words.length, cachedTokens: this.#cachedTokens };
    if (!request.isStreaming) {
      const body = encodeReply(head, words.join(" "), finishReason, usage);
      this.#response.writeHead(200, { "content-type": "application/json" }).end(body);
      return;
    }
    this.#response.write(sseEvent(encodeFinish(head, finishReason)));
    if (request.includesUsage) this.#response.write(sseEvent(encodeUsageEvent(head, usage)));
    this.#response.end(SSE_DONE);
  }
}

/** Pieces put together are the words with single spaces between them, which is how they are tokenized again. */
function pieceAt(words: readonly string[], index: number): string {
  return index === 0 ? words[0] : ` ${words[index]}`;
}
