import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Accounting } from "../../src/core/accounts.ts";
import { Rng } from "../../src/core/rng.ts";
import { parseSamples } from "../../src/wire/prometheus-text.ts";
import { MODEL, type RunningProgram, startProgram } from "../integration/gateway/program-fleet.ts";
import { runWarmpath } from "../support/run-program.ts";

export interface SoakPlan {
  readonly seconds: number;
  /** Conversations under way, each always waiting for or reading an answer. */
  readonly streams: number;
  readonly workers: number;
  /** Room of the gateway's index; far less than what the workers hold together. */
  readonly indexBlocks: number;
  readonly sampleSeconds: number;
}

/** What the gateway said of itself at a moment. */
export interface SoakSample {
  readonly atSeconds: number;
  readonly residentBytes: number;
  readonly heapUsedBytes: number;
  readonly externalBytes: number;
  readonly indexBlocks: number;
  readonly indexPages: number;
  readonly indexMaxPages: number;
  readonly evictedPages: number;
  readonly offered: number;
  readonly unfinished: number;
}

export interface SoakResult {
  readonly plan: SoakPlan;
  readonly samples: readonly SoakSample[];
  /** The gateway's own books when all was over. */
  readonly gateway: Accounting;
  readonly client: ClientSummary;
}

/** What the load generator counted. */
export interface ClientSummary {
  readonly accounting: Accounting;
  readonly requestsPerSecond: number;
  readonly outputTokensPerSecond: number;
  readonly cacheHitRate: number;
}

/**
 * A worker is slowed down until a stream gets some fifteen tokens a second: hundreds of streams are then a load that one
 * machine bears together with the fleet and the clients.
 */
const WORKER = ["worker", "--model-path", MODEL, "--port", "0", "--speed", "0.12", "--kv-pool-tokens", "65536"];
const CONVERSATION = ["--turns", "3-5", "--max-tokens", "64", "--think", "0"];
const STARTERS = 64;
const STARTER_WORDS = 400;
const DRAIN_SECONDS = 60;
/** So few that they are all there before anything is compared. */
const RECORDS_KEPT = 1000;

const METRICS = {
  residentBytes: "warmpath_process_resident_memory_bytes",
  heapUsedBytes: "warmpath_nodejs_heap_size_used_bytes",
  externalBytes: "warmpath_nodejs_external_memory_bytes",
} as const;

/** Runs a fleet, a gateway and clients, each a process of its own, and looks at the gateway every now and then. */
export async function soak(
  plan: SoakPlan,
  progress: (sample: SoakSample) => void = () => undefined,
): Promise<SoakResult> {
  const programs: RunningProgram[] = [];
  const starters = await mkdtemp(join(tmpdir(), "warmpath-soak-"));
  try {
    await writeStarters(starters);
    const names = Array.from({ length: plan.workers }, (_, i) => `worker-${i}`);
    for (const name of names) programs.push(await startProgram([...WORKER, "--name", name]));
    const found = programs.flatMap(({ url }, i) => ["--worker", `${names[i]}=${url}`]);
    const room = ["--index-blocks", String(plan.indexBlocks), "--records-kept", String(RECORDS_KEPT)];
    const gateway = await startProgram(["gateway", "--port", "0", "--admin-port", "0", ...room, ...found]);
    programs.push(gateway);
    const adminUrl = String(gateway.details["adminUrl"]);
    const samples: SoakSample[] = [];
    const load = sendLoad(plan, gateway.url, starters);
    await sampleUntilOver(plan, adminUrl, load, (sample) => {
      samples.push(sample);
      progress(sample);
    });
    const client = await load;
    const { queued: _, ...accounts } = await ask<Accounting & { queued: number }>(`${adminUrl}/admin/accounts`);
    return { plan, samples, gateway: accounts, client };
  } finally {
    await Promise.all(programs.map((program) => program.stop("SIGKILL")));
    await rm(starters, { recursive: true });
  }
}

/** Sends conversations until the time is over; what the client counted. */
async function sendLoad({ seconds, streams }: SoakPlan, url: string, starters: string): Promise<ClientSummary> {
  const pace = ["--concurrency", String(streams), "--duration", `${seconds}s`, "--drain", `${DRAIN_SECONDS}s`];
  const words = ["load", "--url", url, ...pace, ...CONVERSATION, "--starters", starters, "--token-times", "none"];
  const longestMs = 1000 * (seconds + 2 * DRAIN_SECONDS);
  const { status, stdout, stderr } = await runWarmpath([...words, "--json"], { longestMs });
  if (status !== 0) throw new Error(`the load ended with ${status}: ${stderr}`);
  return JSON.parse(stdout) as ClientSummary;
}

/** Looks at the gateway at fixed times for as long as the load is meant to last. */
async function sampleUntilOver(
  { seconds, sampleSeconds }: SoakPlan,
  adminUrl: string,
  load: Promise<unknown>,
  sampled: (sample: SoakSample) => void,
): Promise<void> {
  const startedMs = performance.now();
  let isOver = false;
  const over = load.finally(() => (isOver = true)).catch(() => undefined);
  for (let due = sampleSeconds; due <= seconds; due += sampleSeconds) {
    const waitMs = startedMs + 1000 * due - performance.now();
    await Promise.race([over, new Promise((resolve) => setTimeout(resolve, Math.max(0, waitMs)))]);
    if (isOver) break;
    sampled(await look(adminUrl, (performance.now() - startedMs) / 1000));
  }
}

async function look(adminUrl: string, atSeconds: number): Promise<SoakSample> {
  const [metrics, index, accounts] = await Promise.all([
    fetch(`${adminUrl}/metrics`).then((response) => response.text()),
    ask<{ blocks: number; pages: number; maxPages: number; evictedPages: number }>(`${adminUrl}/admin/index`),
    ask<Accounting>(`${adminUrl}/admin/accounts`),
  ]);
  const values = new Map(
    parseSamples(metrics, new Set(Object.values(METRICS))).map(({ name, value }) => [name, value]),
  );
  const figure = (name: string): number => {
    const value = values.get(name);
    if (value === undefined) throw new Error(`the gateway does not tell ${name}`);
    return value;
  };
  return {
    atSeconds,
    residentBytes: figure(METRICS.residentBytes),
    heapUsedBytes: figure(METRICS.heapUsedBytes),
    externalBytes: figure(METRICS.externalBytes),
    indexBlocks: index.blocks,
    indexPages: index.pages,
    indexMaxPages: index.maxPages,
    evictedPages: index.evictedPages,
    offered: accounts.offered,
    unfinished: accounts.unfinished,
  };
}

async function ask<T>(url: string): Promise<T> {
  return (await (await fetch(url)).json()) as T;
}

/** Texts that have nothing in common, so that conversations do not all begin alike. */
async function writeStarters(folder: string): Promise<void> {
  const rng = new Rng(0).stream("starters");
  for (let i = 0; i < STARTERS; i++) {
    const words = Array.from({ length: STARTER_WORDS }, () => rng.below(1_000_000).toString(36));
    await writeFile(join(folder, `${String(i).padStart(2, "0")}.txt`), `${words.join(" ")}\n`);
  }
}
