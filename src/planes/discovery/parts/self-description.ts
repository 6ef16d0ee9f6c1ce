import { request } from "undici";
import { z } from "zod";
import { textWithin } from "../../../wire/body-text.ts";
import { announcedWorker } from "./worker-schema.ts";
import type { DiscoveredWorker } from "../types.ts";

/** Where our own workers say what they are. */
export const SELF_DESCRIPTION_PATH = "/.well-known/warmpath-worker";

/** What a worker says of itself. */
export interface SelfDescription {
  readonly worker: DiscoveredWorker;
  /** What its tokens are: `word` for the built-in tokenizer; anything else only the worker itself can tell. */
  readonly tokenizer: string | undefined;
}

/** A worker's answer; engines that are not ours are `foreign`, and who gave no answer at all may give one later. */
export type Introduction =
  | { readonly kind: "described"; readonly description: SelfDescription }
  | { readonly kind: "foreign" | "unreachable" };

const ANSWER_MS = 1000;
const MOST_BYTES = 64 * 1024;
const spoken = z.object({ tokenizer: z.string().optional() });

/** Asks a worker what it is. */
export async function askForDescription(url: string, answerMs: number = ANSWER_MS): Promise<Introduction> {
  let text: string | undefined;
  try {
    const answer = await request(new URL(SELF_DESCRIPTION_PATH, url), {
      headersTimeout: answerMs,
      bodyTimeout: answerMs,
      signal: AbortSignal.timeout(answerMs),
    });
    text = await textWithin(answer.body, MOST_BYTES);
    if (text === undefined || answer.statusCode !== 200) return { kind: "foreign" };
  } catch {
    return { kind: "unreachable" };
  }
  try {
    const said: unknown = JSON.parse(text);
    const { tokenizer } = spoken.parse(said);
    return { kind: "described", description: { worker: announcedWorker.parse(said), tokenizer } };
  } catch {
    return { kind: "foreign" };
  }
}
