import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { cpuSeconds, residentMegabytes } from "../gateway/process-figures.ts";

export interface WorkerResult {
  readonly tokensPerSecond: number;
  readonly cpuMsPerThousandTokens: number;
  /** Of the gaps between reads of one stream; the step itself takes most of it. */
  readonly gapP50Ms: number;
  readonly gapP99Ms: number;
  readonly rssMb: number;
}

const STREAMS = 60;
const WARM_UP_MS = 6000;
const MEASURED_MS = 8000;
const MODEL = "Llama-3.1-70B-Instruct-FP8";
const FLAGS = ["--engine", "trtllm", "--model-path", MODEL, "--kv-cache-dtype", "fp8", "--max-batch-size", "64"];

const worker = spawn(
  process.execPath,
  ["--import", "tsx", "src/cli/main.ts", "worker", "--port", "0", "--json", "--max-num-tokens", "16384", ...FLAGS],
  { cwd: fileURLToPath(new URL("../..", import.meta.url)), stdio: ["ignore", "pipe", "inherit"] },
);
try {
  const [line] = (await once(createInterface(worker.stdout), "line")) as [string];
  const { port } = new URL((JSON.parse(line) as { url: string }).url);
  process.stdout.write(`${JSON.stringify(await measure(Number(port), worker.pid ?? 0))}\n`);
} finally {
  worker.kill("SIGKILL");
}
process.exit(0);

async function measure(port: number, pid: number): Promise<WorkerResult> {
  let tokens = 0;
  const gapsMs: number[] = [];
  for (let i = 0; i < STREAMS; i++)
    openStream(port, i, (more, gapMs) => {
      tokens += more;
      if (gapMs !== undefined) gapsMs.push(gapMs);
    });
  await wait(WARM_UP_MS);
  const before = { cpuSeconds: cpuSeconds([pid]), tokens, atMs: performance.now() };
  gapsMs.length = 0;
  await wait(MEASURED_MS);
  const spentSeconds = cpuSeconds([pid]) - before.cpuSeconds;
  const streamed = tokens - before.tokens;
  gapsMs.sort((a, b) => a - b);
  return {
    tokensPerSecond: (1000 * streamed) / (performance.now() - before.atMs),
    cpuMsPerThousandTokens: (1e6 * spentSeconds) / streamed,
    gapP50Ms: gapsMs[gapsMs.length >> 1],
    gapP99Ms: gapsMs[Math.floor(gapsMs.length * 0.99)],
    rssMb: residentMegabytes([pid]),
  };
}

/** One client that reads and counts events, over a bare socket so that it costs little beside the worker. */
function openStream(port: number, i: number, read: (tokens: number, gapMs: number | undefined) => void): void {
  const content = Array.from({ length: 3500 }, (_, k) => `document${i % 10}-${k}`).join(" ");
  const messages = [{ role: "user", content: `${content} question${i}` }];
  const body = JSON.stringify({ model: MODEL, messages, max_tokens: 4000, stream: true });
  const socket = connect(port, "127.0.0.1");
  socket.write(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: worker\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
  let lastMs: number | undefined;
  socket.on("data", (chunk: Buffer) => {
    let events = 0;
    for (let at = chunk.indexOf("data: "); at >= 0; at = chunk.indexOf("data: ", at + 1)) events++;
    const nowMs = performance.now();
    read(events, lastMs === undefined ? undefined : nowMs - lastMs);
    lastMs = nowMs;
  });
}
