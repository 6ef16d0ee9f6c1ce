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
  readonly tokens: readonly Uint32Array[];
}

const bpe = new ByteBpe(workerData as BpeDefinition);

parentPort?.on("message", ({ id, passages }: PassageJob) => {
  const tokens = passages.map((passage) => bpe.encodePlain(passage));
  const answer: PassageAnswer = { id, tokens };
  parentPort?.postMessage(
    answer,
    tokens.map(({ buffer }) => buffer as ArrayBuffer),
  );
});
