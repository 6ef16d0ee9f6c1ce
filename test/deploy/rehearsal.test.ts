import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import OpenAI from "openai";
import { afterEach, expect, test } from "vitest";
import { stringify } from "yaml";
import { MODEL, type RunningProgram, startProgram } from "../integration/gateway/program-fleet.ts";
import { NatsServer } from "../support/nats-server.ts";
import { requireProgram, type SkippableTest } from "../support/required-component.ts";
import { words } from "../support/running-worker.ts";

const WORKERS = ["a", "b", "c", "d"];
const STREAMS_PER_GATEWAY = 6;
const ANSWER_TOKENS = 1000;
const POLL = { timeout: 60_000, interval: 100 } as const;

const closing: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

interface WorkerView {
  readonly worker: string;
  readonly state: string;
  readonly indexState: string;
  readonly modelled: { readonly inFlight: number };
  readonly reported: { readonly running: number } | null;
}

interface Fleet {
  readonly workers: readonly RunningProgram[];
  readonly gateways: readonly RunningProgram[];
}

async function startFleet(natsUrl: string): Promise<Fleet> {
  const planes = ["--port", "0", "--event-plane", natsUrl];
  const workers = await Promise.all(
    WORKERS.map((name) => startProgram(["worker", ...planes, "--name", name, "--model-path", MODEL, "--speed", "4"])),
  );
  const found = workers.flatMap(({ url }, i) => ["--worker", `${WORKERS[i]}=${url}`]);
  const gateways = await Promise.all(
    [0, 1].map(() => startProgram(["gateway", ...planes, "--admin-port", "0", ...found])),
  );
  closing.push(() => Promise.all([...gateways, ...workers].map((program) => program.stop("SIGKILL"))));
  return { workers, gateways };
}

/** Scrapes everybody, and answers instant queries by instance. */
async function startPrometheus(
  context: SkippableTest,
  programs: readonly RunningProgram[],
): Promise<(query: string) => Promise<Map<string, number>>> {
  const program = requireProgram(context, ["prometheus"]);
  const folder = await mkdtemp(join(tmpdir(), "warmpath-prometheus-"));
  const targets = programs.map(({ url }) => new URL(url).host);
  const config = {
    global: { scrape_interval: "1s" },
    scrape_configs: [{ job_name: "all", static_configs: [{ targets }] }],
  };
  await writeFile(join(folder, "prometheus.yaml"), stringify(config));
  const address = `127.0.0.1:${await freePort()}`;
  const flags = [`--config.file=${join(folder, "prometheus.yaml")}`, `--storage.tsdb.path=${join(folder, "data")}`];
  const child = spawn(program, [...flags, `--web.listen-address=${address}`], { stdio: "ignore" });
  closing.push(async () => {
    const exited = once(child, "exit");
    child.kill("SIGKILL");
    await exited;
    await rm(folder, { recursive: true });
  });
  return async (query) => {
    const answer = await fetch(`http://${address}/api/v1/query?query=${encodeURIComponent(query)}`).catch(
      () => undefined,
    );
    const body = (await answer?.json()) as {
      data?: { result: { metric: { instance: string }; value: [number, string] }[] };
    };
    return new Map((body?.data?.result ?? []).map(({ metric, value }) => [metric.instance, Number(value[1])]));
  };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

function clientOf({ url }: RunningProgram): OpenAI {
  return new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0, timeout: 120_000 });
}

async function admin<T>({ details }: RunningProgram, path: string): Promise<T> {
  return (await (await fetch(`${String(details["adminUrl"])}${path}`)).json()) as T;
}

/** A stream that has begun; `ended` says how many tokens it had, or that it broke. */
async function startStream(client: OpenAI, topic: string): Promise<{ ended: Promise<number | "broken"> }> {
  const stream = await client.chat.completions.create({
    model: MODEL,
    messages: [{ role: "user", content: words(300, topic) }],
    max_tokens: ANSWER_TOKENS,
    stream: true,
    stream_options: { include_usage: true },
  });
  const chunks = stream[Symbol.asyncIterator]();
  await chunks.next();
  const read = async (): Promise<number | "broken"> => {
    let tokens = 0;
    try {
      for (let next = await chunks.next(); !next.done; next = await chunks.next()) {
        tokens = next.value.usage?.completion_tokens ?? tokens;
      }
      return tokens;
    } catch {
      return "broken";
    }
  };
  return { ended: read() };
}

test("a gateway killed under load loses its own streams only, and the other's view stays correct", async (context) => {
  const nats = await NatsServer.start(context);
  closing.push(() => nats.close());
  const { workers, gateways } = await startFleet(nats.url);
  const ask = await startPrometheus(context, [...gateways, ...workers]);
  const [killed, staying] = gateways;
  const [first, second] = [clientOf(killed), clientOf(staying)];

  // A conversation that only the gateway to be killed has seen.
  const messages = [{ role: "user" as const, content: words(640, "known") }];
  await first.chat.completions.create({ model: MODEL, messages, max_tokens: 2 });
  await expect.poll(async () => (await ask("up")).size, POLL).toBe(gateways.length + workers.length);
  // An answer takes minutes now: none can end by itself before the gateway does.
  await setFault(workers, { slow: 100 });
  const [lost, kept] = await Promise.all([startStreams(first, "one"), startStreams(second, "two")]);

  await killed.stop("SIGKILL");
  await setFault(workers, { slow: null });

  expect(await Promise.all(lost.map(({ ended }) => ended))).toEqual(lost.map(() => "broken"));
  expect(await Promise.all(kept.map(({ ended }) => ended))).toEqual(kept.map(() => ANSWER_TOKENS));

  // Workers have noticed that nobody reads the lost answers, and the gateway's books and the workers' agree.
  const idle = WORKERS.map((worker) => ({ worker, state: "ready", indexState: "live", inFlight: 0, running: 0 }));
  await expect.poll(() => loadOf(staying), POLL).toEqual(idle);

  // What the other gateway placed is known here all the same, from events: predicted and found.
  const { data, response } = await second.chat.completions
    .create({ model: MODEL, messages, max_tokens: 2 })
    .withResponse();
  const found = data.usage?.prompt_tokens_details?.cached_tokens;
  const decision = await admin<{ predictedCachedTokens: number; observedCachedTokens: number }>(
    staying,
    `/admin/decisions/${response.headers.get("x-warmpath-decision")}`,
  );
  expect(found).toBeGreaterThanOrEqual(600);
  expect(decision.observedCachedTokens).toBe(found);
  expect(decision.predictedCachedTokens).toBe(found);

  const [gone, here] = [new URL(killed.url).host, new URL(staying.url).host];
  await expect.poll(async () => (await ask("up")).get(gone), POLL).toBe(0);
  const completed = 'sum by (instance) (warmpath_requests_ended_total{account="completed"})';
  await expect.poll(async () => (await ask(completed)).get(here), POLL).toBe(STREAMS_PER_GATEWAY + 1);
});

async function setFault(workers: readonly RunningProgram[], faults: object): Promise<void> {
  const body = JSON.stringify(faults);
  await Promise.all(workers.map(({ url }) => fetch(`${url}/debug/faults`, { method: "POST", body })));
}

async function startStreams(client: OpenAI, name: string): Promise<{ ended: Promise<number | "broken"> }[]> {
  return Promise.all(Array.from({ length: STREAMS_PER_GATEWAY }, (_, i) => startStream(client, `${name}${i}x`)));
}

async function loadOf(gateway: RunningProgram): Promise<object[]> {
  const { workers } = await admin<{ workers: WorkerView[] }>(gateway, "/admin/workers");
  return workers
    .map(({ worker, state, indexState, modelled, reported }) => ({
      worker,
      state,
      indexState,
      inFlight: modelled.inFlight,
      running: reported?.running,
    }))
    .sort((a, b) => (a.worker < b.worker ? -1 : 1));
}
