import { hashText } from "../../src/core/hash.ts";
import { parseSamples } from "../../src/wire/prometheus-text.ts";
import { MODEL, type RunningProgram, startProgram } from "../integration/gateway/program-fleet.ts";
import { CuttableProxy } from "../support/cuttable-proxy.ts";
import type { NatsServer } from "../support/nats-server.ts";
import { startTestGateway, type GatewayUnderTest } from "../support/running-gateway.ts";

/** Small enough for blocks to be forgotten now and then: removals are events too. */
const ENGINE = ["--model-path", MODEL, "--speed", "5", "--kv-pool-tokens", "16384", "--max-seq-len", "4096"];

/** A worker in a process of its own that can be killed, stopped, slowed and cut off from the broker. */
export class FragileWorker {
  readonly name: string;
  /** What it reaches the broker by. */
  readonly #broker: CuttableProxy;
  #brokerUrl = "";
  #program: RunningProgram | undefined;
  /** Where it is found in all its lives. */
  url = "";

  private constructor(name: string, nats: NatsServer) {
    this.name = name;
    this.#broker = new CuttableProxy(nats.port);
  }

  static async start(name: string, nats: NatsServer): Promise<FragileWorker> {
    const worker = new FragileWorker(name, nats);
    worker.#brokerUrl = (await worker.#broker.listen()).replace("tcp:", "nats:");
    try {
      await worker.live();
    } catch (error) {
      await worker.close();
      throw error;
    }
    return worker;
  }

  /** Starts its life, with an empty cache, where it was before. */
  async live(): Promise<void> {
    const port = this.url === "" ? "0" : new URL(this.url).port;
    const place = ["--name", this.name, "--port", port, "--event-plane", this.#brokerUrl];
    this.#program = await startProgram(["worker", ...place, ...ENGINE]);
    this.url = this.#program.url;
  }

  /** Ends it without a word: connections break, the cache is gone. */
  async kill(): Promise<void> {
    await this.#program?.stop("SIGKILL");
  }

  /** Its connections stay, and nothing comes over them any more. */
  hang(): void {
    this.#program?.process.kill("SIGSTOP");
  }

  goOn(): void {
    this.#program?.process.kill("SIGCONT");
  }

  /** Makes every step so many times longer; 1 is as usual. */
  async slow(factor: number): Promise<void> {
    const body = JSON.stringify({ slow: factor === 1 ? null : factor });
    await fetch(`${this.url}/debug/faults`, { method: "POST", body });
  }

  async cutOffEvents(): Promise<void> {
    await this.#broker.close();
  }

  async reconnectEvents(): Promise<void> {
    await this.#broker.listen();
  }

  /** Every block that it has cached, by its own word. */
  async cachedBlocks(): Promise<string[]> {
    const answer = (await (await fetch(`${this.url}/debug/cache`)).json()) as { runs: { hashes: string[] }[] };
    return [...new Set(answer.runs.flatMap(({ hashes }) => hashes))].sort();
  }

  async close(): Promise<void> {
    await this.kill();
    await this.#broker.close();
  }
}

/** Every block that the gateway believes a worker to have, by events alone. */
export function indexedBlocks({ decider }: GatewayUnderTest, worker: string): string[] {
  const replica = decider.router.fleet.find(worker);
  if (replica === undefined) return [];
  const blocks = new Set<string>();
  for (const { sequence } of decider.router.index.snapshot(replica)) {
    for (let at = 0; at < sequence.length; at += 2) blocks.add(hashText(sequence[at], sequence[at + 1]));
  }
  return [...blocks].sort();
}

/** Whether the gateway sends anything to a worker. */
export function isInUse({ decider }: GatewayUnderTest, worker: string): boolean {
  const { fleet } = decider.router;
  const replica = fleet.find(worker);
  return replica !== undefined && fleet.state(replica) === "ready";
}

/** Streams that a worker is in the middle of, by the gateway's books. */
export function streamsOn({ decider }: GatewayUnderTest, worker: string): number {
  const { fleet, load } = decider.router;
  const replica = fleet.find(worker);
  return replica === undefined ? 0 : load.columns.decoding[replica];
}

/** Streams that went on elsewhere when their worker was lost. */
export async function migrationsOf({ decider }: GatewayUnderTest): Promise<number> {
  const samples = parseSamples(await decider.metricsText(), new Set(["warmpath_migrations_total"]));
  return samples.reduce((sum, { value }) => sum + value, 0);
}

/** A gateway that loses patience soon, so that a test need not. */
export function startImpatientGateway(
  workers: readonly FragileWorker[],
  nats: NatsServer,
  settings: Readonly<Record<string, unknown>>,
): Promise<GatewayUnderTest> {
  return startTestGateway({
    worker: workers.map(({ name, url }) => `${name}=${url}`),
    tokenizer: "word",
    blockTokens: 16,
    eventPlane: nats.url,
    // Every worker gets work at any time, so that every cache has something to be known of.
    policy: "round-robin",
    firstByteSeconds: 2,
    gapSeconds: 2,
    healthSeconds: 0.1,
    indexBlocks: 65_536,
    ...settings,
  });
}
