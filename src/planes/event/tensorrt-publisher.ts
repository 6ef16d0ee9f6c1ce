import type { IncomingMessage, ServerResponse } from "node:http";
import { WarmpathError } from "../../core/errors.ts";
import type { KvEvent } from "../../core/kv-index/types.ts";
import type { StoredContent } from "../../wire/kv-events/engine-encoder.ts";
import { encodeTensorRtEvent } from "../../wire/kv-events/tensorrt-encoder.ts";
import type { HttpMount } from "../http-mount/types.ts";
import type { EventPublisher } from "./types.ts";

export interface TensorRtEventPublisherOptions {
  readonly blockTokens: number;
  /** Events kept for whoever asks next; the oldest are dropped. `kv_cache_config.event_buffer_max_size` of the engine. */
  readonly bufferEvents: number;
  /** Asked for each event; true drops it, as a full buffer does. For tests. */
  readonly loses?: () => boolean;
}

/** Tells of a worker's cache as trtllm-serve does: `POST /kv_cache_events` answers with what has happened since the last one. */
export class TensorRtEventPublisher implements EventPublisher, HttpMount {
  readonly #options: TensorRtEventPublisherOptions;
  #events: string[] = [];

  constructor(options: TensorRtEventPublisherOptions) {
    this.#options = options;
  }

  publish(event: KvEvent, content?: StoredContent): void {
    const { blockTokens, bufferEvents, loses } = this.#options;
    if (event.kind === "stored" && content === undefined) {
      throw new WarmpathError("WP_INVALID_STATE", "a stored event needs its tokens to be told as TensorRT-LLM does");
    }
    if (loses?.() === true) return;
    this.#events.push(encodeTensorRtEvent(event, content?.tokens ?? new Uint32Array(0), blockTokens));
    if (this.#events.length > bufferEvents) this.#events.shift();
  }

  load(): void {}

  handle(request: IncomingMessage, response: ServerResponse): boolean {
    if (request.method !== "POST" || request.url !== "/kv_cache_events") return false;
    const events = this.#events;
    this.#events = [];
    response.writeHead(200, { "content-type": "application/json" }).end(`[${events.join(",")}]`);
    return true;
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
