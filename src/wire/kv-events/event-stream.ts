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

/** Reads server-sent events by name and data, wherever the chunks are cut. Streams of answers have a faster way: `SseScanner`. */
export class EventStreamReader {
  readonly #decoder = new TextDecoder();
  #rest = "";

  /** Takes the next bytes and returns the events completed by them. */
  push(chunk: Uint8Array): StreamEvent[] {
    this.#rest += this.#decoder.decode(chunk, { stream: true });
    const blocks = this.#rest.split(/\r?\n\r?\n/);
    this.#rest = blocks.pop() ?? "";
    return blocks.flatMap((block) => eventOf(block) ?? []);
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
