import { WarmpathError } from "../../core/errors.ts";

/** One server-sent event of a stream that names its events. */
export interface StreamEvent {
  /** `message` where the stream names none. */
  readonly type: string;
  readonly data: string;
}

/** One event as text, for a stream that names its events. */
export function streamEvent(type: string, data: string): string {
  return `event: ${type}\ndata: ${data}\n\n`;
}

/** A line that keeps a quiet stream alive and means nothing. */
export const STREAM_HEARTBEAT = ":\n\n";

const SEPARATOR = /\r?\n\r?\n/;
/** Characters of a separator that may stand at the end of a chunk, with the rest of it in the next. */
const SEAM = 3;
/** No event of ours is as long; whoever sends one is not who it seems to be. */
const LONGEST_EVENT = 64 * 1024 * 1024;

/** Reads server-sent events by name and data, wherever the chunks are cut. Streams of answers have a faster way: `SseScanner`. */
export class EventStreamReader {
  readonly #decoder = new TextDecoder();
  /** The beginning of an event, in the pieces in which it came: put together once, when its end is there. */
  #held: string[] = [];
  #heldLength = 0;
  /** The end of it. */
  #seam = "";

  /** Takes the next bytes and returns the events completed by them. Throws if there is no end to an event. */
  push(chunk: Uint8Array): StreamEvent[] {
    const text = this.#decoder.decode(chunk, { stream: true });
    const isComplete = SEPARATOR.test(this.#seam + text);
    this.#hold(text);
    if (!isComplete) return [];
    const blocks = this.#held.join("").split(SEPARATOR);
    const rest = blocks.pop() ?? "";
    this.#held = [];
    this.#heldLength = 0;
    this.#seam = "";
    this.#hold(rest);
    return blocks.flatMap((block) => eventOf(block) ?? []);
  }

  #hold(text: string): void {
    this.#held.push(text);
    this.#heldLength += text.length;
    this.#seam = (this.#seam + text).slice(-SEAM);
    if (this.#heldLength > LONGEST_EVENT) {
      throw new WarmpathError("WP_INVALID_INPUT", `an event has more than ${LONGEST_EVENT} characters`);
    }
  }
}

function eventOf(block: string): StreamEvent | undefined {
  let type = "message";
  const data: string[] = [];
  for (const line of block.split(/\r?\n/)) {
    if (line.startsWith("event:")) type = line.slice(6).trim();
    else if (line.startsWith("data:")) data.push(line.slice(line[5] === " " ? 6 : 5));
  }
  return data.length === 0 ? undefined : { type, data: data.join("\n") };
}
