import type { Rng } from "../../src/core/rng.ts";

/** What a parser of one kind is fed with: good inputs, and words that mean something to it. */
export interface Corpus {
  readonly inputs: readonly Uint8Array[];
  readonly words: readonly Uint8Array[];
}

type Mutation = (bytes: Uint8Array, rng: Rng, corpus: Corpus) => Uint8Array;

const MOST_MUTATIONS = 6;
/** Long enough for every branch, short enough for a million. */
const MOST_BYTES = 4096;
const EDGE_BYTES: readonly number[] = [0, 1, 9, 10, 13, 32, 34, 44, 58, 91, 92, 93, 123, 125, 127, 128, 192, 224, 255];

const MUTATIONS: readonly Mutation[] = [
  // A byte becomes any other, or one that means something somewhere.
  (bytes, rng) => replaced(bytes, rng.below(bytes.length + 1), 1, Uint8Array.of(rng.below(256))),
  (bytes, rng) => replaced(bytes, rng.below(bytes.length + 1), 1, Uint8Array.of(pick(EDGE_BYTES, rng))),
  (bytes, rng) => replaced(bytes, rng.below(bytes.length + 1), 0, Uint8Array.of(pick(EDGE_BYTES, rng))),
  // A piece goes away, comes twice, or comes from elsewhere.
  (bytes, rng) => replaced(bytes, rng.below(bytes.length + 1), 1 + rng.below(16), new Uint8Array(0)),
  (bytes, rng) => replaced(bytes, rng.below(bytes.length + 1), 0, piece(bytes, rng)),
  (bytes, rng, { words }) => replaced(bytes, rng.below(bytes.length + 1), rng.below(8), pick(words, rng)),
  (bytes, rng, { inputs }) =>
    replaced(bytes, rng.below(bytes.length + 1), rng.below(64), piece(pick(inputs, rng), rng)),
  // It ends early.
  (bytes, rng) => bytes.slice(0, rng.below(bytes.length + 1)),
];

/** One input: a good one with a few things wrong, or sometimes none at all. */
export function mutated(rng: Rng, corpus: Corpus): Uint8Array {
  let bytes = pick(corpus.inputs, rng);
  const count = rng.below(MOST_MUTATIONS + 1);
  for (let i = 0; i < count; i++) bytes = pick(MUTATIONS, rng)(bytes, rng, corpus);
  return bytes.subarray(0, MOST_BYTES);
}

/** A corpus of texts and bytes. */
export function corpusOf(inputs: readonly (string | Uint8Array)[], words: readonly (string | Uint8Array)[]): Corpus {
  const encoder = new TextEncoder();
  const bytesOf = (input: string | Uint8Array): Uint8Array =>
    typeof input === "string" ? encoder.encode(input) : input;
  return { inputs: inputs.map(bytesOf), words: words.map(bytesOf) };
}

function pick<T>(from: readonly T[], rng: Rng): T {
  return from[rng.below(from.length)];
}

function piece(bytes: Uint8Array, rng: Rng): Uint8Array {
  const from = rng.below(bytes.length + 1);
  return bytes.slice(from, from + rng.below(64));
}

function replaced(bytes: Uint8Array, at: number, count: number, by: Uint8Array): Uint8Array {
  const rest = bytes.subarray(Math.min(bytes.length, at + count));
  const result = new Uint8Array(at + by.length + rest.length);
  result.set(bytes.subarray(0, at));
  result.set(by, at);
  result.set(rest, at + by.length);
  return result;
}
