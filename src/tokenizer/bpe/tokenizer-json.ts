import { WarmpathError } from "../../core/errors.ts";
import { BYTE_CHARACTERS } from "./byte-alphabet.ts";
import type { AddedToken, BpeDefinition, NormalForm } from "./definition.ts";
import { MergeTable, mergeTableSize } from "./merge-table.ts";
import { GPT2_PATTERN } from "./regex-splitter.ts";
import { createSplitter } from "./splitters.ts";
import { wordPattern } from "./word-splitter.ts";

type Json = Readonly<Record<string, unknown>>;

const NORMAL_FORMS: readonly string[] = ["NFC", "NFD", "NFKC", "NFKD"];
/** These never occur in UTF-8, so a vocabulary may lack them. */
const NEVER_IN_UTF8 = (byte: number): boolean => byte === 0xc0 || byte === 0xc1 || byte > 0xf4;

/**
 * Reads a parsed `tokenizer.json`. Byte-level BPE is all it knows: what a file asks for beyond that is said in the error, for
 * tokens that are nearly right are worse than none.
 */
export function readTokenizerJson(json: unknown): BpeDefinition {
  const file = object(json, "the file");
  const model = object(file["model"], "model");
  const type = model["type"] ?? "BPE";
  if (type !== "BPE") throw unusable("model.type", `is ${JSON.stringify(type)}, and only byte-level BPE can be used`);
  for (const name of ["dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback"]) {
    if (model[name]) throw unusable(`model.${name}`, "is not what byte-level BPE has");
  }
  const vocabulary = new Map(Object.entries(object(model["vocab"], "model.vocab"))) as Map<string, number>;
  const patterns = patternsOf(file["pre_tokenizer"]);
  // Found out now, not at the first prompt.
  createSplitter(patterns);
  const addedTokens = list(file["added_tokens"] ?? [], "added_tokens").map(addedToken);
  return {
    merges: mergesOf(list(model["merges"], "model.merges"), vocabulary),
    byteTokens: byteTokensOf(vocabulary),
    wholeWords: model["ignore_merges"] === true ? vocabulary : undefined,
    normalForms: normalFormsOf(file["normalizer"] ?? null),
    patterns,
    addedTokens,
    ...framesOf(file["post_processor"] ?? null),
  };
}

function mergesOf(merges: readonly unknown[], vocabulary: ReadonlyMap<string, number>): Int32Array {
  // In shared memory, so that a thread that tokenizes long texts does not need another copy.
  const buffer = new SharedArrayBuffer(mergeTableSize(merges.length) * Int32Array.BYTES_PER_ELEMENT);
  const slots = new Int32Array(buffer);
  const table = new MergeTable(slots);
  merges.forEach((merge, rank) => {
    const [left, right] = typeof merge === "string" ? merge.split(" ", 2) : (merge as readonly string[]);
    const merged = vocabulary.get(left + right);
    const leftToken = vocabulary.get(left);
    const rightToken = vocabulary.get(right);
    if (leftToken === undefined || rightToken === undefined || merged === undefined) {
      throw unusable(`model.merges[${rank}]`, "names a token that is not in the vocabulary");
    }
    table.set(leftToken, rightToken, rank, merged);
  });
  return slots;
}

function byteTokensOf(vocabulary: ReadonlyMap<string, number>): Int32Array {
  return Int32Array.from(BYTE_CHARACTERS, (character, byte) => {
    const token = vocabulary.get(character);
    if (token === undefined && !NEVER_IN_UTF8(byte)) {
      throw unusable("model.vocab", `has no token for byte ${byte}: it is not byte-level`);
    }
    return token ?? -1;
  });
}

function normalFormsOf(normalizer: unknown): NormalForm[] {
  if (normalizer === null) return [];
  const { type, normalizers } = object(normalizer, "normalizer");
  if (type === "Sequence") return list(normalizers, "normalizer.normalizers").flatMap(normalFormsOf);
  if (typeof type === "string" && NORMAL_FORMS.includes(type)) return [type as NormalForm];
  throw unusable("normalizer.type", `is ${JSON.stringify(type)}; ${NORMAL_FORMS.join(", ")} can be used`);
}

function patternsOf(preTokenizer: unknown): string[] {
  const steps = sequenceOf(preTokenizer, "pretokenizers");
  const patterns: string[] = [];
  let isByteLevel = false;
  for (const step of steps) {
    if (isByteLevel) throw unusable("pre_tokenizer", "goes on after ByteLevel");
    if (step["type"] === "ByteLevel") {
      isByteLevel = true;
      if (step["add_prefix_space"] === true) throw unusable("pre_tokenizer", "adds a space before every text");
      if (step["use_regex"] !== false) patterns.push(GPT2_PATTERN);
    } else if (step["type"] === "Split") patterns.push(splitPattern(step));
    else throw unusable("pre_tokenizer.type", `is ${JSON.stringify(step["type"])}; Split and ByteLevel can be used`);
  }
  if (!isByteLevel) throw unusable("pre_tokenizer", "is not byte-level");
  return patterns;
}

function splitPattern(step: Json): string {
  const pattern = (step["pattern"] as Json | undefined)?.["Regex"];
  if (typeof pattern !== "string") throw unusable("pre_tokenizer.pattern", "is no regular expression");
  const keepsAll = step["behavior"] === "Isolated" && step["invert"] !== true;
  // Where a pattern matches everything, taking the matches is the same as cutting around them.
  const matchesAll = pattern === wordPattern("\\p{N}") || pattern === wordPattern("\\p{N}{1,3}");
  const takesMatches = step["behavior"] === "Removed" && step["invert"] === true && matchesAll;
  if (!keepsAll && !takesMatches) {
    throw unusable("pre_tokenizer.behavior", `is ${JSON.stringify(step["behavior"])}; Isolated can be used`);
  }
  return pattern;
}

/** What a post-processor puts around a single text. */
function framesOf(processor: unknown): Pick<BpeDefinition, "textPrefix" | "textSuffix"> {
  const textPrefix: number[] = [];
  const textSuffix: number[] = [];
  for (const step of processor === null ? [] : sequenceOf(processor, "processors")) {
    if (step["type"] === "ByteLevel") continue;
    if (step["type"] !== "TemplateProcessing") {
      throw unusable("post_processor.type", `is ${JSON.stringify(step["type"])}; TemplateProcessing can be used`);
    }
    const special = object(step["special_tokens"], "post_processor.special_tokens");
    let frame = textPrefix;
    for (const part of list(step["single"], "post_processor.single") as readonly Json[]) {
      if (part["Sequence"] !== undefined) frame = textSuffix;
      else {
        const name = (part["SpecialToken"] as Json | undefined)?.["id"];
        const ids = (special[String(name)] as Json | undefined)?.["ids"];
        frame.push(...(list(ids, `post_processor.special_tokens ${String(name)}`) as number[]));
      }
    }
  }
  return { textPrefix, textSuffix };
}

function addedToken(value: unknown): AddedToken {
  const token = object(value, "added_tokens");
  const { id, content } = token;
  if (typeof id !== "number" || typeof content !== "string" || content === "") {
    throw unusable("added_tokens", "has an entry without a number or a text");
  }
  if (token["single_word"] === true) throw unusable(`added token ${content}`, "must stand alone as a word");
  return {
    id,
    content,
    stripsLeft: token["lstrip"] === true,
    stripsRight: token["rstrip"] === true,
    isNormalized: token["normalized"] === true,
  };
}

function sequenceOf(value: unknown, parts: string): readonly Json[] {
  const step = object(value, parts);
  return step["type"] === "Sequence" ? list(step[parts], parts).map((part) => object(part, parts)) : [step];
}

function object(value: unknown, name: string): Json {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw unusable(name, "must be an object");
  return value as Json;
}

function list(value: unknown, name: string): readonly unknown[] {
  if (!Array.isArray(value)) throw unusable(name, "must be a list");
  return value;
}

function unusable(name: string, problem: string): WarmpathError {
  return new WarmpathError("WP_INVALID_INPUT", `tokenizer.json: ${name} ${problem}`);
}
