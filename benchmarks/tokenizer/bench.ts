import { bestAndMedian, inFreshProcess } from "../fresh-process.ts";
import type { TokenizerResult } from "./measure.ts";

export interface TokenizerBenchOptions {
  readonly rounds: number;
  readonly progress: (line: string) => void;
}

const LOWER_IS_BETTER: readonly (keyof TokenizerResult)[] = ["loadCpuMs", "nextTurnCpuMs", "nextTurnOfLongChatCpuMs"];

/** Speed of byte-level BPE with a real vocabulary of 151,643 entries, each round in a fresh process. */
export function benchTokenizer({ rounds, progress }: TokenizerBenchOptions): Record<string, unknown> {
  const results: TokenizerResult[] = [];
  for (let round = 0; round < rounds; round++) {
    results.push(inFreshProcess("./tokenizer/measure.ts", {}) as TokenizerResult);
    progress(
      `round ${round + 1} of ${rounds}: ${results[round].warmMbPerCoreSecond.toFixed(1)} MB per core-second warm`,
    );
  }
  const summary: Record<string, number> = {};
  for (const key of Object.keys(results[0]) as (keyof TokenizerResult)[]) {
    const { best, median } = bestAndMedian(
      results.map((result) => result[key]),
      LOWER_IS_BETTER.includes(key) ? "lowest" : "highest",
    );
    summary[key] = rounded(best);
    if (key !== "textMb" && key !== "charsPerToken") summary[`${key}Median`] = rounded(median);
  }
  return {
    bench: "tokenizer",
    vocabulary: "Qwen2.5, 151,643 entries",
    rounds,
    method:
      "English prose of the installed documentation; CPU time of all threads, best of fresh processes with the median beside it. " +
      "cold: the first text of a process, compilation included; newText: code compiled, caches empty; warm: text whose words are known; " +
      "nextTurn: whole prompts of 4,000 tokens, chat template included, in chats whose first 3,500 were seen the turn before; " +
      "nextTurnOfLongChat: the same with 61 messages; peer: @huggingface/tokenizers, warm",
    ...summary,
    ratioToPeer: rounded(summary["warmMbPerCoreSecondMedian"] / summary["peerWarmMbPerCoreSecondMedian"]),
  };
}

function rounded(value: number): number {
  return Number(value.toPrecision(4));
}
