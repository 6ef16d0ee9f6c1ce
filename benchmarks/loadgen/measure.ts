/** One whole measurement of the load generator; started by `bench.ts` with what to measure, prints the figures as JSON. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { NS_PER_MS, NS_PER_SECOND } from "../../src/core/clock.ts";
import type { RequestRecord } from "../../src/core/request-record.ts";
import { startLoad } from "../../src/loadgen/start-load.ts";
import type { CompletedAnswer, PromptWriter, WrittenPrompt } from "../../src/loadgen/types.ts";
import { DurationHistogram } from "../../src/measure/duration-histogram.ts";
import { ClosedLoop } from "../../src/workload/closed-loop.ts";
import type { SessionSupply, WorkloadRequest } from "../../src/workload/request.ts";

export interface LoadgenMeasureRequest {
  readonly streams: number;
  readonly chunks: number;
  readonly warmUpSeconds: number;
  readonly measuredSeconds: number;
}

export interface LoadgenResult {
  readonly chunkLagP50Ms: number;
  readonly chunkLagP99Ms: number;
  readonly chunkLagMaxMs: number;
  readonly scheduleLagP99Ms: number;
  readonly chunksPerSecond: number;
  readonly chunksPerCpuSecond: number;
  readonly loopUtilisation: number;
  /** How late a thread was woken that had nothing to do. */
  readonly idleThreadDelayP99Ms: number;
  readonly requests: number;
  readonly failed: number;
}

/** Sessions without end, of two turns each, so that the text of an answer is gathered as in a conversation. */
class EndlessStreams implements SessionSupply {
  readonly #chunks: number;

  constructor(chunks: number) {
    this.#chunks = chunks;
  }

  session(ordinal: number): ReturnType<SessionSupply["session"]> {
    const prompt = { kind: "append", segments: [{ id: ordinal, tokens: 16 }] } as const;
    const turns = [0, 1].map((turn) => ({
      requestId: 2 * ordinal + turn,
      prompt,
      outputTokens: this.#chunks,
      answerId: -1 - (2 * ordinal + turn),
      thinkNs: 0,
    }));
    return { session: ordinal, name: `stream-${ordinal}`, turns };
  }
}

/** Asks for nothing in particular, and keeps what the server said: when it sent each chunk. */
class StampReader implements PromptWriter {
  readonly heard: { readonly id: number; readonly sentTimes: string }[] = [];

  write(): WrittenPrompt {
    return { kind: "chat", json: '[{"role":"user","content":"go on"}]' };
  }

  needsAnswer(): boolean {
    return true;
  }

  answered({ id }: WorkloadRequest, { escapedText }: CompletedAnswer): void {
    this.heard.push({ id, sentTimes: escapedText });
  }

  forget(): void {}
}

const request = JSON.parse(process.argv[2] ?? "{}") as LoadgenMeasureRequest;
const server = spawn(
  process.execPath,
  ["--import", "tsx", fileURLToPath(new URL("./instant-server.ts", import.meta.url))],
  { stdio: ["ignore", "pipe", "inherit"] },
);
try {
  const [line] = (await once(createInterface(server.stdout), "line")) as [string];
  const { url } = JSON.parse(line) as { url: string };
  process.stdout.write(`${JSON.stringify(await measure(url, request))}\n`);
} finally {
  server.kill("SIGKILL");
}
process.exit(0);

async function measure(url: string, options: LoadgenMeasureRequest): Promise<LoadgenResult> {
  const { streams, chunks, warmUpSeconds, measuredSeconds } = options;
  const prompts = new StampReader();
  const records: RequestRecord[] = [];
  const origin = process.hrtime.bigint();
  // Over the length of a stream: clients that do not know each other do not start at the same moment.
  const source = new ClosedLoop(new EndlessStreams(chunks), {
    concurrency: streams,
    rampNs: (warmUpSeconds / 2) * NS_PER_SECOND,
  });
  const run = startLoad({
    target: { url, model: "bench" },
    source,
    prompts,
    originHrtimeNs: origin,
    onRecord: (record) => void records.push(record),
  });
  const idle = new Worker(new URL("./idle-thread.mjs", import.meta.url), { execArgv: [] });
  await wait(warmUpSeconds * 1000);
  idle.postMessage("begin", []);
  const fromNs = run.nowNs();
  const cpu = process.cpuUsage();
  const utilisation = performance.eventLoopUtilization();
  await wait(measuredSeconds * 1000);
  const toNs = run.nowNs();
  const spent = process.cpuUsage(cpu);
  const { utilization } = performance.eventLoopUtilization(utilisation);
  idle.postMessage("end", []);
  const [idleThreadDelayP99Ms] = (await once(idle, "message")) as [number];
  await run.stop({ drainMs: 0 });
  const cpuSeconds = (spent.user + spent.system) / 1e6;
  return { ...figures({ records, prompts, origin, fromNs, toNs, cpuSeconds, utilization }), idleThreadDelayP99Ms };
}

function figures(seen: {
  readonly records: readonly RequestRecord[];
  readonly prompts: StampReader;
  readonly origin: bigint;
  readonly fromNs: number;
  readonly toNs: number;
  readonly cpuSeconds: number;
  readonly utilization: number;
}): Omit<LoadgenResult, "idleThreadDelayP99Ms"> {
  const { records, fromNs, toNs, origin } = seen;
  const isMeasured = (ns: number): boolean => ns >= fromNs && ns < toNs;
  const scheduleLags = new DurationHistogram();
  const chunkLags = new DurationHistogram();
  const byId = new Map(records.map((record) => [record.id, record]));
  let received = 0;
  for (const { tokenTimes, intendedNs, sentNs } of records) {
    if (isMeasured(intendedNs) && sentNs !== undefined) scheduleLags.add(Math.max(0, sentNs - intendedNs));
    if (tokenTimes?.form === "chunks") received += tokenTimes.timesNs.filter(isMeasured).length;
  }
  for (const { id, sentTimes } of seen.prompts.heard) {
    const tokenTimes = byId.get(String(id))?.tokenTimes;
    if (tokenTimes?.form !== "chunks") continue;
    const stamps = sentTimes.trim().split(" ");
    for (const [at, receivedNs] of tokenTimes.timesNs.entries()) {
      const sentNs = Number(BigInt(stamps[at]) - origin);
      if (isMeasured(sentNs)) chunkLags.add(Math.max(0, receivedNs - sentNs));
    }
  }
  const ms = (histogram: DurationHistogram, share: number): number => histogram.percentileNs(share) / NS_PER_MS;
  return {
    chunkLagP50Ms: ms(chunkLags, 0.5),
    chunkLagP99Ms: ms(chunkLags, 0.99),
    chunkLagMaxMs: ms(chunkLags, 1),
    scheduleLagP99Ms: ms(scheduleLags, 0.99),
    chunksPerSecond: received / ((toNs - fromNs) / NS_PER_SECOND),
    chunksPerCpuSecond: received / seen.cpuSeconds,
    loopUtilisation: seen.utilization,
    requests: records.length,
    failed: records.filter(({ account }) => account !== "completed" && account !== "unfinished").length,
  };
}
