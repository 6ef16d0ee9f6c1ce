/** One whole measurement of the gateway; started by `bench.ts` with what to measure, prints the figures as JSON. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { chatBody, runSmallRequests, runStreams, smallBody } from "./load.ts";
import { cpuSeconds, residentMegabytes } from "./process-figures.ts";

export interface GatewayMeasureRequest {
  readonly processes: number;
  readonly rounds: number;
  readonly streams: number;
  readonly smallRequests: number;
  /** A folder with tokenizer.json; null for the word tokenizer. */
  readonly tokenizer: string | null;
}

interface Target {
  readonly url: string;
  readonly pids: readonly number[];
}

/** Streams that say how much forwarding costs: short prompts, long answers. */
const FORWARDING = { streams: 240, requests: 1, chunks: 250, body: smallBody };
/** Turns that the two take in a round: the shorter they are, the less it matters what else the machine does. */
const TURNS = 2;
/** Requests that say how much later the first token comes: long prompts, short answers. */
const PROMPTING = { requests: 3, chunks: 20 };
const SMALL_AT_ONCE = 64;
const children: ChildProcess[] = [];

const request = JSON.parse(process.argv[2] ?? "{}") as GatewayMeasureRequest;
try {
  process.stdout.write(`${JSON.stringify(await measure(request))}\n`);
} finally {
  for (const child of children) child.kill("SIGTERM");
}

async function measure(options: GatewayMeasureRequest): Promise<object> {
  const upstream = await start(new URL("./upstream.ts", import.meta.url), []);
  const passThrough = await start(new URL("./pass-through.ts", import.meta.url), [upstream.url]);
  const gateway = await startGateway(upstream.url, options);
  const targets = { gateway, passThrough };
  const { streams } = options;
  for (const { url } of Object.values(targets)) {
    await runStreams(url, FORWARDING);
    await runStreams(url, { ...PROMPTING, streams, body: chatBody });
  }
  const rounds: { readonly gateway: Round; readonly passThrough: Round }[] = [];
  for (let round = 0; round < options.rounds; round++) {
    rounds.push(await runRound(targets, streams, round + 1));
    const { gateway: ours, passThrough: bare } = rounds[round];
    const rate = `${Math.round(ours.chunksPerCoreSecond)} chunks per core-second, ratio ${ratioOf(rounds[round]).toFixed(3)}`;
    progress(`round ${round + 1}: ${rate}, TTFT p50 ${ours.ttftP50Ms} ms, pass-through ${bare.ttftP50Ms} ms`);
  }
  const small = { gateway: await runSmall(gateway, options), passThrough: await runSmall(passThrough, options) };
  const p50 = (at: number): number => rounds[at].gateway.ttftP50Ms - rounds[at].passThrough.ttftP50Ms;
  const p99 = (at: number): number => rounds[at].gateway.ttftP99Ms - rounds[at].passThrough.ttftP99Ms;
  return {
    processes: options.processes,
    ratio: round3(median(rounds.map(ratioOf))),
    gatewayChunksPerCoreSecond: Math.round(median(rounds.map(({ gateway: one }) => one.chunksPerCoreSecond))),
    passThroughChunksPerCoreSecond: Math.round(median(rounds.map(({ passThrough: one }) => one.chunksPerCoreSecond))),
    ttftAddedP50Ms: round3(median(rounds.map((_, at) => p50(at)))),
    ttftAddedP99Ms: round3(median(rounds.map((_, at) => p99(at)))),
    gatewayTtftP50Ms: round3(median(rounds.map(({ gateway: one }) => one.ttftP50Ms))),
    passThroughTtftP50Ms: round3(median(rounds.map(({ passThrough: one }) => one.ttftP50Ms))),
    cpuMsPer1000Requests: { gateway: small.gateway.cpuMsPer1000, passThrough: small.passThrough.cpuMsPer1000 },
    requestsBefore: options.smallRequests,
    residentMegabytesAfter: small.gateway.residentMegabytes,
    perRound: rounds,
  };
}

interface Round {
  readonly chunksPerCoreSecond: number;
  readonly ttftP50Ms: number;
  readonly ttftP99Ms: number;
  readonly requests: number;
}

type Targets = Readonly<Record<"gateway" | "passThrough", Target>>;

async function runRound(targets: Targets, streams: number, round: number): Promise<Record<keyof Targets, Round>> {
  const names = ["gateway", "passThrough"] as const;
  const sums = { gateway: { chunks: 0, spent: 0 }, passThrough: { chunks: 0, spent: 0 } };
  const ttftMs = { gateway: [] as number[], passThrough: [] as number[] };
  for (let turn = 0; turn < TURNS; turn++) {
    for (const name of names) {
      const { url, pids } = targets[name];
      const steady = (isSteady: boolean): void => {
        sums[name].spent += isSteady ? -cpuSeconds(pids) : cpuSeconds(pids);
      };
      sums[name].chunks += (await runStreams(url, { ...FORWARDING, steady })).steadyChunks;
      // Requests are numbered on, so that what a turn calls new nobody has seen.
      const first = (round * TURNS + turn) * 1000;
      const body = (stream: number, number: number): string => chatBody(stream, first + number);
      ttftMs[name].push(...(await runStreams(url, { ...PROMPTING, streams, body })).ttftMs);
    }
  }
  const figures = (name: keyof Targets): Round => {
    const sorted = ttftMs[name].sort((a, b) => a - b);
    const at = (share: number): number =>
      round3(sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]);
    const { chunks, spent } = sums[name];
    return { chunksPerCoreSecond: chunks / spent, ttftP50Ms: at(0.5), ttftP99Ms: at(0.99), requests: sorted.length };
  };
  return { gateway: figures("gateway"), passThrough: figures("passThrough") };
}

async function runSmall(
  target: Target,
  { smallRequests }: GatewayMeasureRequest,
): Promise<{ cpuMsPer1000: number; residentMegabytes: number }> {
  const before = cpuSeconds(target.pids);
  await runSmallRequests(target.url, smallRequests, SMALL_AT_ONCE);
  const spentMs = 1000 * (cpuSeconds(target.pids) - before);
  return { cpuMsPer1000: round3((1000 * spentMs) / smallRequests), residentMegabytes: residentMegabytes(target.pids) };
}

async function startGateway(worker: string, { processes, tokenizer }: GatewayMeasureRequest): Promise<Target> {
  const built = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
  if (!existsSync(built)) throw new Error("the gateway is measured as it is built: npm run build");
  const words = ["gateway", "--json", "--port", "0", "--admin-port", "0", "--worker", worker];
  words.push("--tokenizer", tokenizer ?? "word", "--processes", String(processes), "--block-tokens", "64");
  return toTarget(spawn(process.execPath, [built, ...words], { stdio: ["ignore", "pipe", "inherit"] }));
}

function start(script: URL, words: readonly string[]): Promise<Target> {
  return toTarget(
    spawn(process.execPath, ["--import", "tsx", fileURLToPath(script), ...words], {
      stdio: ["ignore", "pipe", "inherit"],
    }),
  );
}

/** A process that prints one line of JSON with its address, and with the processes it consists of where they are several. */
async function toTarget(child: ChildProcess): Promise<Target> {
  children.push(child);
  if (child.stdout === null || child.pid === undefined) throw new Error("a process could not be started");
  const lines = createInterface({ input: child.stdout });
  const [line] = (await once(lines, "line")) as [string];
  const { url, deciderPid, proxyPids } = JSON.parse(line) as { url: string; deciderPid?: number; proxyPids?: number[] };
  const pids = [child.pid, ...(deciderPid === undefined ? [] : [deciderPid]), ...(proxyPids ?? [])];
  return { url, pids };
}

function ratioOf(round: { readonly gateway: Round; readonly passThrough: Round }): number {
  return round.gateway.chunksPerCoreSecond / round.passThrough.chunksPerCoreSecond;
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1];
}

function round3(value: number): number {
  return Math.round(value * 1000) / 1000;
}

function progress(line: string): void {
  process.stderr.write(`${line}\n`);
}
