/** Workers and a gateway as a user starts them: each a process of the built command line. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import OpenAI from "openai";
import { REPOSITORY } from "../../support/run-program.ts";

export const MODEL = "llama-3.1-8b";
const BLOCK_TOKENS = 16;

/** A process that serves, with what it printed about itself. */
export interface RunningProgram {
  readonly url: string;
  readonly details: Readonly<Record<string, unknown>>;
  readonly process: ChildProcess;
  /** Ends it as an operator would, and returns its exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

/** Starts a command that prints one line of JSON as soon as it serves. */
export async function startProgram(
  words: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<RunningProgram> {
  const main = join(REPOSITORY, "dist", "cli", "main.js");
  const child = spawn(process.execPath, [main, ...words, "--json"], {
    env: { ...process.env, ...environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let complaints = "";
  child.stderr.on("data", (chunk: Buffer) => (complaints += chunk.toString()));
  const exited = once(child, "exit");
  const lines = createInterface({ input: child.stdout });
  const line = await Promise.race([
    once(lines, "line").then(([text]) => text as string),
    exited.then(([code]) => Promise.reject(new Error(`${words.join(" ")} ended with ${code}: ${complaints}`))),
  ]);
  const details = JSON.parse(line) as Record<string, unknown>;
  return {
    url: details["url"] as string,
    details,
    process: child,
    stop: async (signal = "SIGTERM") => {
      if (child.exitCode === null && child.signalCode === null) child.kill(signal);
      const [code] = (await exited) as [number | null];
      return code;
    },
  };
}

export interface FleetOptions {
  readonly events: "http" | "zmq" | "none";
  readonly gatewayFlags?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly workerFlags?: readonly string[];
}

/** Two workers behind a gateway. */
export class ProgramFleet {
  readonly workers: ReadonlyMap<string, RunningProgram>;
  readonly gateway: RunningProgram;
  readonly client: OpenAI;

  private constructor(workers: ReadonlyMap<string, RunningProgram>, gateway: RunningProgram) {
    this.workers = workers;
    this.gateway = gateway;
    const baseURL = `${gateway.url}/v1`;
    this.client = new OpenAI({ baseURL, apiKey: "none", maxRetries: 0, timeout: 40_000 });
  }

  static async start(options: FleetOptions): Promise<ProgramFleet> {
    const started = await Promise.all(["a", "b"].map((name) => startWorker(name, options)));
    const workers = new Map(started.map(({ name, program }) => [name, program]));
    const flags = started.flatMap(({ written }) => ["--worker", written]);
    // Where events and tokens come from over HTTP, the workers say themselves.
    const words = ["gateway", "--port", "0", "--admin-port", "0"];
    if (options.events === "none") words.push("--event-plane", "none");
    const gateway = await startProgram([...words, ...flags, ...(options.gatewayFlags ?? [])], options.environment);
    return new ProgramFleet(workers, gateway);
  }

  get adminUrl(): string {
    return this.gateway.details["adminUrl"] as string;
  }

  async admin<T>(path: string): Promise<T> {
    return (await (await fetch(this.adminUrl + path)).json()) as T;
  }

  async close(): Promise<void> {
    await this.gateway.stop("SIGKILL");
    await Promise.all([...this.workers.values()].map((worker) => worker.stop("SIGKILL")));
  }
}

async function startWorker(
  name: string,
  { events, workerFlags = [] }: FleetOptions,
): Promise<{ name: string; program: RunningProgram; written: string }> {
  const words = ["worker", "--port", "0", "--name", name, "--model-path", MODEL, "--speed", "5"];
  words.push("--kv-block-size", String(BLOCK_TOKENS), ...workerFlags);
  if (events !== "zmq") {
    const program = await startProgram(words);
    return { name, program, written: `${name}=${program.url}` };
  }
  const [endpoint, replay] = await Promise.all([freeEndpoint(), freeEndpoint()]);
  const program = await startProgram([
    ...words,
    "--kv-events-config",
    JSON.stringify({ endpoint, replay_endpoint: replay }),
  ]);
  return { name, program, written: `${name}=${program.url},events=${endpoint},replay=${replay}` };
}

async function freeEndpoint(): Promise<string> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("no port");
  return `tcp://127.0.0.1:${address.port}`;
}
