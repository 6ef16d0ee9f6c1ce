/** The thread that tokenizes long texts: it is given a tokenizer to begin with, and then passages. Started by thread.ts. */
import { parentPort, workerData } from "node:worker_threads";
import { ByteBpe } from "../../../tokenizer/bpe/byte-bpe.ts";
import type { BpeDefinition } from "../../../tokenizer/bpe/definition.ts";

export interface PassageJob {
  readonly id: number;
  readonly passages: readonly string[];
}

export interface PassageAnswer {
  readonly id: number;
  /** Undefined if they could not be made. */
  readonly tokens: readonly Uint32Array[] | undefined;
  readonly problem?: string;
}

const bpe = new ByteBpe(workerData as BpeDefinition);

parentPort?.on("message", ({ id, passages }: PassageJob) => {
  const answer = answerTo(id, passages);
  parentPort?.postMessage(answer, answer.tokens?.map(({ buffer }) => buffer as ArrayBuffer) ?? []);
});

/** A text that cannot be tokenized, such as one too long for a pattern, must not end what others wait for. */
function answerTo(id: number, passages: readonly string[]): PassageAnswer {
  try {
    return { id, tokens: passages.map((passage) => bpe.encodePlain(passage)) };
  } catch (error) {
    return { id, tokens: undefined, problem: String(error) };
  }
}
