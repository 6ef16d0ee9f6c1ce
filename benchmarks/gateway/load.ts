import { type Dispatcher, Pool } from "undici";

/** What a run of streams gave. */
export interface StreamRun {
  /** Chunks that came while all streams were open. */
  readonly steadyChunks: number;
  readonly ttftMs: readonly number[];
}

/** Words of which a byte-level tokenizer makes about one token each. */
const WORDS =
  "the of and to in is for on that by this with you it not or be are from at as your all have new more an was we will".split(
    " ",
  );
const SPREAD_MS = 1000;
const SEEN_TOKENS = 3500;
const NEW_TOKENS = 500;

/** The body of a stream's n-th request: 3,500 tokens that its stream sent before, and 500 that nobody has seen. */
export function chatBody(stream: number, request: number): string {
  const messages = [
    { role: "system", content: text(`s${stream}`, SEEN_TOKENS) },
    { role: "user", content: text(`s${stream} r${request}`, NEW_TOKENS) },
  ];
  return JSON.stringify({ model: "bench", stream: true, messages });
}

/** A request of a few words. */
export function smallBody(): string {
  return JSON.stringify({ model: "bench", stream: true, messages: [{ role: "user", content: "say something" }] });
}

function text(name: string, tokens: number): string {
  let state = 0;
  for (const letter of name) state = (Math.imul(state, 31) + letter.charCodeAt(0)) >>> 0;
  const words = [name];
  while (words.length < tokens) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    words.push(WORDS[(state >>> 16) % WORDS.length]);
  }
  return words.join(" ");
}

/** Holds so many streams open, each asking again as soon as it has ended, until every one has asked `requests` times. */
export async function runStreams(
  url: string,
  options: {
    streams: number;
    requests: number;
    chunks: number;
    body: (stream: number, request: number) => string;
    /** Told when all streams are open, and when the first of them has ended. */
    steady?: (isSteady: boolean) => void;
  },
): Promise<StreamRun> {
  const pool = new Pool(url);
  const ttftMs: number[] = [];
  let steadyChunks = 0;
  let begun = 0;
  let ended = 0;
  const lanes = Array.from({ length: options.streams }, async (_, stream) => {
    // Clients that do not know each other do not start at the same moment.
    await new Promise((resolve) => setTimeout(resolve, (stream / options.streams) * SPREAD_MS));
    for (let request = 0; request < options.requests; request++) {
      const body = options.body(stream, request);
      const sentMs = performance.now();
      let isFirst = true;
      await ask(pool, body, options.chunks, (chunk) => {
        if (isFirst) {
          ttftMs.push(performance.now() - sentMs);
          if (++begun === options.streams) options.steady?.(true);
        }
        isFirst = false;
        if (begun < options.streams || ended > 0) return;
        for (let at = chunk.indexOf("\n\n"); at >= 0; at = chunk.indexOf("\n\n", at + 2)) steadyChunks++;
      });
      if (++ended === 1) options.steady?.(false);
    }
  });
  await Promise.all(lanes);
  await pool.close();
  return { steadyChunks, ttftMs };
}

/** Sends so many small requests, `atOnce` of them at a time. */
export async function runSmallRequests(url: string, requests: number, atOnce: number): Promise<void> {
  const pool = new Pool(url);
  const body = JSON.stringify({ model: "bench", messages: [{ role: "user", content: "say something" }] });
  let left = requests;
  const lanes = Array.from({ length: atOnce }, async () => {
    while (left-- > 0) await ask(pool, body, 0, () => {});
  });
  await Promise.all(lanes);
  await pool.close();
}

function ask(pool: Pool, body: string, chunks: number, heard: (chunk: Buffer) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = { "content-type": "application/json", ...(chunks > 0 && { "x-request-id": String(chunks) }) };
    const handler: Dispatcher.DispatchHandler = {
      onRequestStart: () => {},
      onResponseStart: (_controller, status) => {
        if (status !== 200) reject(new Error(`answered with ${status}`));
      },
      onResponseData: (_controller, chunk) => heard(chunk),
      onResponseEnd: () => resolve(),
      onResponseError: (_controller, error) => reject(error),
    };
    pool.dispatch({ method: "POST", path: "/v1/chat/completions", headers, body }, handler);
  });
}
