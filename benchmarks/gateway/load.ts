import { type Dispatcher, Pool } from "undici";
import { chatBody, smallBody } from "./prompts.ts";
import { TICK_MS } from "./tick.ts";

const SPREAD_MS = 1000;

/** Holds streams of short prompts and long answers open, and counts the chunks that come while all of them are. */
export async function runStreams(
  url: string,
  options: {
    streams: number;
    chunks: number;
    /** Told when all streams are open, and when the first of them has ended. */
    steady: (isSteady: boolean) => void;
  },
): Promise<number> {
  const pool = new Pool(url);
  const body = smallBody(true);
  let steadyChunks = 0;
  let begun = 0;
  let ended = 0;
  const lanes = Array.from({ length: options.streams }, async (_, stream) => {
    // Clients that do not know each other do not start at the same moment.
    await waitMs((stream / options.streams) * SPREAD_MS);
    let isFirst = true;
    await ask(pool, body, options.chunks, (chunk) => {
      if (isFirst && ++begun === options.streams) options.steady(true);
      isFirst = false;
      if (begun < options.streams || ended > 0) return;
      for (let at = chunk.indexOf("\n\n"); at >= 0; at = chunk.indexOf("\n\n", at + 2)) steadyChunks++;
    });
    if (++ended === 1) options.steady(false);
  });
  await Promise.all(lanes);
  await pool.close();
  return steadyChunks;
}

/**
 * Sends prompts at random moments, as from clients that do not know each other, so many that `streams` are open at a time.
 * Returns the time to the first chunk of each that was sent when as many were open.
 */
export async function runPrompts(
  url: string,
  options: { streams: number; chunks: number; requests: number; turn: number },
): Promise<number[]> {
  const { streams, chunks, requests, turn } = options;
  // Made before anything is timed. They are numbered on, so that what a turn calls new nobody has seen.
  const bodies = Array.from({ length: streams + requests }, (_, i) =>
    chatBody(i % streams, turn * 100 + Math.floor(i / streams)),
  );
  const pool = new Pool(url);
  const ttftMs: number[] = [];
  const random = uniform(turn);
  const meanGapMs = (chunks * TICK_MS) / streams;
  const asked: Promise<void>[] = [];
  let dueMs = performance.now();
  for (const [i, body] of bodies.entries()) {
    dueMs += -Math.log(1 - random()) * meanGapMs;
    const earlyMs = dueMs - performance.now();
    if (earlyMs > 0) await waitMs(earlyMs);
    const sentMs = performance.now();
    let isFirst = true;
    const heard = (): void => {
      if (isFirst && i >= streams) ttftMs.push(performance.now() - sentMs);
      isFirst = false;
    };
    asked.push(ask(pool, body, chunks, heard));
  }
  await Promise.all(asked);
  await pool.close();
  return ttftMs;
}

/** Sends so many small requests that do not stream, `atOnce` of them at a time. */
export async function runSmallRequests(url: string, requests: number, atOnce: number): Promise<void> {
  const pool = new Pool(url);
  const body = smallBody(false);
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

/** Numbers from 0 to 1, the same for the same seed: both targets get the same moments. */
function uniform(seed: number): () => number {
  let state = Math.imul(seed + 1, 0x9e3779b1) >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function waitMs(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
