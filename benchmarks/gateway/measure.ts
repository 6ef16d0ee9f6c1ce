/** One whole measurement of the gateway; started by `bench.ts` with what to measure, prints the figures as JSON. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { runPrompts, runSmallRequests, runStreams } from "./load.ts";
import { cpuSeconds, machineCpuSeconds, residentMegabytes } from "./process-figures.ts";

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
const FORWARDING = { streams: 240, chunks: 250 };
/** Prompts that say how much later the first token comes: 4,000 tokens each, short answers. */
const PROMPTING = { chunks: 20, requests: 250 };
/** Turns that the two take in a round: the shorter they are, the less it matters what else the machine does. */
const FORWARDING_TURNS = 2;
const PROMPTING_TURNS = 4;
const SMALL_AT_ONCE = 64;
const NAMES = ["gateway", "passThrough"] as const;
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
    await runStreams(url, { ...FORWARDING, steady: () => {} });
    await runPrompts(url, { ...PROMPTING, streams, turn: 0 });
  }
  const own = [process.pid, ...upstream.pids, ...passThrough.pids, ...gateway.pids];
  const startedMs = performance.now();
  const foreignCpu = (): number => machineCpuSeconds() - cpuSeconds(own);
  const foreignBefore = foreignCpu();
  const rounds: Record<Name, Round>[] = [];
  for (let round = 0; round < options.rounds; round++) {
    rounds.push(await runRound(targets, streams, round + 1));
    progress(`round ${round + 1}: ${describe(rounds[round])}`);
  }
  const foreignCores = (foreignCpu() - foreignBefore) / ((performance.now() - startedMs) / 1000);
  const small = { gateway: await runSmall(gateway, options), passThrough: await runSmall(passThrough, options) };
  const of = (figure: (round: Record<Name, Round>) => number): number => round3(median(rounds.map(figure)));
  const both = (figure: (one: Round) => number): Record<Name, number> => ({
    gateway: of((round) => figure(round.gateway)),
    passThrough: of((round) => figure(round.passThrough)),
  });
  const added = (figure: (one: Round) => number): number =>
    of((round) => figure(round.gateway) - figure(round.passThrough));
  return {
    processes: options.processes,
    ratio: of(ratioOf),
    gatewayChunksPerCoreSecond: Math.round(of(({ gateway: one }) => one.chunksPerCoreSecond)),
    passThroughChunksPerCoreSecond: Math.round(of(({ passThrough: one }) => one.chunksPerCoreSecond)),
    ttftAddedP50Ms: added((one) => one.ttftP50Ms),
    ttftAddedP99Ms: added((one) => one.ttftP99Ms),
    ttftP50Ms: both((one) => one.ttftP50Ms),
    ttftP99Ms: both((one) => one.ttftP99Ms),
    cpuMsPer1000Prompts: both((one) => one.cpuMsPer1000Prompts),
    cpuMsPer1000Requests: { gateway: small.gateway.cpuMsPer1000, passThrough: small.passThrough.cpuMsPer1000 },
    requestsBefore: options.smallRequests,
    residentMegabytesAfter: small.gateway.residentMegabytes,
    coresBusyWithOthers: round3(foreignCores),
    perRound: rounds,
  };
}

interface Round {
  readonly chunksPerCoreSecond: number;
  readonly ttftP50Ms: number;
  readonly ttftP99Ms: number;
  /** Requests that the two percentiles are of. */
  readonly requests: number;
  readonly cpuMsPer1000Prompts: number;
}

type Name = (typeof NAMES)[number];

async function runRound(targets: Record<Name, Target>, streams: number, round: number): Promise<Record<Name, Round>> {
  const sums = { gateway: newSums(), passThrough: newSums() };
  for (let turn = 0; turn < FORWARDING_TURNS; turn++) {
    for (const name of inTurn(turn)) {
      const { url, pids } = targets[name];
      const steady = (isSteady: boolean): void => {
        sums[name].forwardingSeconds += isSteady ? -cpuSeconds(pids) : cpuSeconds(pids);
      };
      sums[name].chunks += await runStreams(url, { ...FORWARDING, steady });
    }
  }
  for (let turn = 0; turn < PROMPTING_TURNS; turn++) {
    for (const name of inTurn(turn)) {
      const { url, pids } = targets[name];
      const before = cpuSeconds(pids);
      const ttftMs = await runPrompts(url, { ...PROMPTING, streams, turn: round * PROMPTING_TURNS + turn });
      sums[name].promptingSeconds += cpuSeconds(pids) - before;
      sums[name].ttftMs.push(...ttftMs);
    }
  }
  return { gateway: figures(sums.gateway, streams), passThrough: figures(sums.passThrough, streams) };
}

/** Who goes first changes, so that what a turn leaves behind falls on both. */
function inTurn(turn: number): readonly Name[] {
  return turn % 2 === 0 ? NAMES : NAMES.toReversed();
}

interface Sums {
  chunks: number;
  forwardingSeconds: number;
  promptingSeconds: number;
  readonly ttftMs: number[];
}

function newSums(): Sums {
  return { chunks: 0, forwardingSeconds: 0, promptingSeconds: 0, ttftMs: [] };
}

function figures({ chunks, forwardingSeconds, promptingSeconds, ttftMs }: Sums, streams: number): Round {
  const sorted = [...ttftMs].sort((a, b) => a - b);
  const at = (share: number): number => round3(sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]);
  const prompts = PROMPTING_TURNS * (streams + PROMPTING.requests);
  return {
    chunksPerCoreSecond: chunks / forwardingSeconds,
    ttftP50Ms: at(0.5),
    ttftP99Ms: at(0.99),
    requests: sorted.length,
    cpuMsPer1000Prompts: round3((1e6 * promptingSeconds) / prompts),
  };
}

function describe(round: Record<Name, Round>): string {
  const { gateway: ours, passThrough: bare } = round;
  const added = (figure: "ttftP50Ms" | "ttftP99Ms"): string => (ours[figure] - bare[figure]).toFixed(2);
  return (
    `${Math.round(ours.chunksPerCoreSecond)} chunks per core-second, ratio ${ratioOf(round).toFixed(3)}; ` +
    `TTFT p50 ${ours.ttftP50Ms} ms (${added("ttftP50Ms")} added), p99 ${ours.ttftP99Ms} ms (${added("ttftP99Ms")} added)`
  );
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
  const [line] = (await Promise.race([once(lines, "line"), once(child, "exit").then(endedEarly)])) as [string];
  const { url, deciderPid, proxyPids } = JSON.parse(line) as { url: string; deciderPid?: number; proxyPids?: number[] };
  const pids = [child.pid, ...(deciderPid === undefined ? [] : [deciderPid]), ...(proxyPids ?? [])];
  return { url, pids };
}

function endedEarly([code]: readonly unknown[]): never {
  throw new Error(
    `a process to be measured ended with exit code ${String(code)} before it said where it is; see above`,
  );
}

function ratioOf(round: Record<Name, Round>): number {
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
