/** The thread that tokenizes what takes long: it is told of a tokenizer to begin with, and then gets work. Started by thread.ts. */
import { parentPort, workerData } from "node:worker_threads";
import { ByteBpe } from "../../../tokenizer/bpe/byte-bpe.ts";
import { ModelTokenizer, type ModelTokenizerOptions } from "../../../tokenizer/model-tokenizer.ts";
import type { WrittenPrompt } from "../../../tokenizer/types.ts";

/** Passages of a text, or a whole prompt, as JSON: a text is handed over faster than many small objects. */
export type ThreadJob = { readonly id: number } & (
  | { readonly passages: readonly string[]; readonly prompt?: undefined }
  | { readonly passages?: undefined; readonly prompt: string }
);

/** The tokens of each passage in order, or of the one prompt. */
export interface ThreadAnswer {
  readonly id: number;
  /** Undefined if they could not be made. */
  readonly tokens: readonly Uint32Array[] | undefined;
  readonly problem?: string;
}

/** Long prompts are few; what of them is kept is in memory twice. */
const CACHE_CHARS = 8 * 1024 * 1024;

const options = workerData as ModelTokenizerOptions;
const bpe = new ByteBpe(options.definition);
let tokenizer: ModelTokenizer | undefined;

function tokensOf({ passages, prompt }: ThreadJob): Uint32Array[] {
  if (passages !== undefined) return passages.map((passage) => bpe.encodePlain(passage));
  tokenizer ??= new ModelTokenizer({ ...options, cacheChars: CACHE_CHARS });
  return [tokenizer.encode(JSON.parse(prompt) as WrittenPrompt)];
}

parentPort?.on("message", (job: ThreadJob) => {
  const answer = answerTo(job);
  parentPort?.postMessage(answer, answer.tokens?.map(({ buffer }) => buffer as ArrayBuffer) ?? []);
});

/** A text that cannot be tokenized, such as one too long for a pattern, must not end what others wait for. */
function answerTo(job: ThreadJob): ThreadAnswer {
  try {
    return { id: job.id, tokens: tokensOf(job) };
  } catch (error) {
    return { id: job.id, tokens: undefined, problem: String(error) };
  }
}
