/** Gateways whose processes are replaced by others while clients come and go. */
import { Agent, type IncomingHttpHeaders, request as httpRequest } from "node:http";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import OpenAI from "openai";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { LogLines } from "./log-lines.ts";
import { MODEL, ProgramFleet } from "./program-fleet.ts";

type Accounts = Readonly<Record<string, number>>;

const TOKENS = 12;

// Three crews of processes come and go in a test, and each is given the time that idle connections have.
vi.setConfig({ testTimeout: 120_000 });

let folder: string;
let fleet: ProgramFleet | undefined;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "warmpath-restart-"));
});

afterEach(async () => {
  await fleet?.close();
  fleet = undefined;
  await rm(folder, { recursive: true, force: true });
});

async function start(processes: number, settings: string, ...flags: readonly string[]): Promise<ProgramFleet> {
  const file = join(folder, "gateway.yaml");
  await writeFile(file, settings);
  // Long enough for the longest stream; idle connections that nobody closes are waited for as long.
  const gatewayFlags = ["--config", file, "--processes", String(processes), "--drain-seconds", "8", ...flags];
  fleet = await ProgramFleet.start({ events: "http", gatewayFlags });
  return fleet;
}

/** Requests one after another until told to stop; what each came to. */
class SteadyLoad {
  readonly failures: string[] = [];
  completed = 0;
  #isStopped = false;
  #noted: () => void = () => {};
  readonly #loops: readonly Promise<void>[];

  constructor(clients: readonly (() => Promise<void>)[]) {
    this.#loops = clients.map(async (askOnce) => {
      while (!this.#isStopped) {
        await askOnce().then(
          () => this.completed++,
          (error: unknown) => this.failures.push(String(error)),
        );
        this.#noted();
      }
    });
  }

  /** Resolves when so many more have completed. */
  async more(count: number): Promise<void> {
    const enough = this.completed + count;
    while (this.completed < enough && this.failures.length === 0) {
      await new Promise<void>((resolve) => (this.#noted = resolve));
    }
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await Promise.all(this.#loops);
  }
}

/** The official client, over connections that it keeps. */
function keepingClient(url: string): () => Promise<void> {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0, timeout: 20_000 });
  let asked = 0;
  return async () => {
    const messages = [{ role: "user", content: `question ${asked++ % 5}` } as const];
    const stream = await client.chat.completions.create({ model: MODEL, messages, max_tokens: TOKENS, stream: true });
    let pieces = 0;
    for await (const chunk of stream) if (chunk.choices[0]?.delta.content) pieces++;
    if (pieces !== TOKENS) throw new Error(`a stream ended after ${pieces} tokens`);
  };
}

interface Answer {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
}

function ask(url: string, agent: Agent | false, limit = TOKENS): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const body = JSON.stringify({ model: MODEL, prompt: "hello there", max_tokens: limit });
    const outgoing = httpRequest(`${url}/v1/completions`, { method: "POST", agent }, (response) => {
      response.on("end", () => resolve({ status: response.statusCode, headers: response.headers }));
      response.on("error", reject);
      response.resume();
    });
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

/** A connection for every request. */
function connectingClient(url: string): () => Promise<void> {
  return async () => {
    const { status } = await ask(url, false);
    if (status !== 200) throw new Error(`a request was answered with ${status}`);
  };
}

/** What processes say at their end of what they did. */
function endedAccounts(lines: readonly string[]): Accounts {
  const sum: Record<string, number> = {};
  for (const line of lines) {
    for (const [, count, account] of line.matchAll(/(\d+) (offered|completed|[a-zA-Z]+)(?:,|$)/g)) {
      sum[account] = (sum[account] ?? 0) + Number(count);
    }
  }
  return sum;
}

describe.each([[1], [2]])("a gateway with %d process(es) that is restarted under load", (processes) => {
  test("refuses no connection and drops no request, twice, and its accounts are what clients counted", async () => {
    const { gateway } = await start(processes, "policy: kv-cost\n");
    const log = new LogLines(gateway.process);
    const clients = [1, 2, 3].flatMap(() => [keepingClient(gateway.url), connectingClient(gateway.url)]);
    const load = new SteadyLoad(clients);
    await load.more(30);
    await writeFile(join(folder, "gateway.yaml"), "policy: round-robin\nindexBlocks: 65536\n");
    gateway.process.kill("SIGUSR2");
    await log.matching(/took over/);
    expect(await fleet!.admin("/admin/settings")).toMatchObject({ policy: "round-robin", indexBlocks: 65_536 });
    await load.more(30);
    gateway.process.kill("SIGUSR2");
    await log.matching(/took over/, 2);
    await load.more(30);
    await load.stop();
    await log.matching(/those before have ended/, 2);
    expect(load.failures).toEqual([]);
    const ended = endedAccounts(await log.matching(/has ended: /, 2));
    const last = await fleet!.admin<Accounts>("/admin/accounts");
    expect(last).toMatchObject({ unfinished: 0, failed: 0 });
    expect(ended["offered"] + last["offered"]).toBe(load.completed);
    expect(ended["completed"] + last["completed"]).toBe(load.completed);
    expect(gateway.process.exitCode).toBeNull();
    expect(await gateway.stop("SIGTERM")).toBe(0);
  });

  test("finishes a stream that began before, and closes kept connections with their next answer", async () => {
    const { client, gateway } = await start(processes, "{}");
    const log = new LogLines(gateway.process);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    expect((await ask(gateway.url, agent)).headers.connection).toBe("keep-alive");
    const messages = [{ role: "user", content: "a story" } as const];
    const stream = await client.chat.completions.create({ model: MODEL, messages, max_tokens: 300, stream: true });
    let pieces = 0;
    let answer: Answer | undefined;
    for await (const chunk of stream) {
      if (chunk.choices[0]?.delta.content) pieces++;
      if (answer !== undefined) continue;
      gateway.process.kill("SIGUSR2");
      await log.matching(/took over/);
      // Those before may hear a moment later that they are to retire.
      do answer = await ask(gateway.url, agent);
      while (answer.status === 200 && answer.headers.connection === "keep-alive");
    }
    expect(pieces).toBe(300);
    expect(answer).toMatchObject({ status: 200, headers: { connection: "close" } });
    // The next one is on a connection of its successor's.
    expect((await ask(gateway.url, agent)).headers.connection).toBe("keep-alive");
    agent.destroy();
    await log.matching(/those before have ended/);
  });

  test("goes on as it is if its successors cannot start", async () => {
    const { gateway, adminUrl } = await start(processes, "policy: round-robin\n");
    const log = new LogLines(gateway.process);
    await writeFile(join(folder, "gateway.yaml"), "policy: nonsense\n");
    gateway.process.kill("SIGUSR2");
    const [mistake] = await log.matching(/those before go on/);
    expect(mistake).toContain("policy");
    // What is wrong with these shows only when somebody tries to serve by them.
    await writeFile(join(folder, "gateway.yaml"), "tokenizer: ./nowhere/tokenizer.json\n");
    gateway.process.kill("SIGUSR2");
    const [, second] = await log.matching(/those before go on/, 2);
    expect(second).toContain("nowhere");
    expect((await ask(gateway.url, false)).status).toBe(200);
    expect(await (await fetch(`${adminUrl}/admin/settings`)).json()).toMatchObject({ policy: "round-robin" });
  });
});

test("a successor knows the caches, and who was drained, before it takes over", async () => {
  const { client, gateway } = await start(1, "policy: kv-cost\n");
  const log = new LogLines(gateway.process);
  const prompt = Array.from({ length: 200 }, (_, i) => `word${i}`).join(" ");
  const chosen = async (): Promise<string | null> => {
    const { response } = await client.completions.create({ model: MODEL, prompt, max_tokens: 2 }).withResponse();
    return response.headers.get("x-warmpath-worker");
  };
  const first = await chosen();
  const other = first === "a" ? "b" : "a";
  await fetch(`${fleet!.adminUrl}/admin/workers/${other}/drain`, { method: "POST" });
  gateway.process.kill("SIGUSR2");
  await log.matching(/took over/);
  const { blocks } = await fleet!.admin<{ blocks: number }>("/admin/index");
  expect(blocks).toBeGreaterThanOrEqual(12);
  const { workers } = await fleet!.admin<{ workers: { name: string; phase: string }[] }>("/admin/workers");
  expect(workers.find(({ name }) => name === other)).toMatchObject({ phase: "draining" });
  await fetch(`${fleet!.adminUrl}/admin/workers/${other}/undrain`, { method: "POST" });
  expect(await chosen()).toBe(first);
});
