import { hashText } from "../../src/core/hash.ts";
import { CuttableProxy } from "../support/cuttable-proxy.ts";
import type { NatsServer } from "../support/nats-server.ts";
import { startTestGateway, type GatewayUnderTest } from "../support/running-gateway.ts";
import { startTestWorker, type WorkerUnderTest } from "../support/running-worker.ts";

/** A worker that can be killed without a word and cut off from the broker: all it is reached by can be cut. */
export class FragileWorker {
  readonly name: string;
  readonly #nats: NatsServer;
  /** What gateways reach it by. */
  readonly #front = new CuttableProxy(0);
  /** What it reaches the broker by. */
  readonly #broker: CuttableProxy;
  #worker: WorkerUnderTest | undefined;
  #frontUrl = "";
  #brokerUrl = "";

  private constructor(name: string, nats: NatsServer) {
    this.name = name;
    this.#nats = nats;
    this.#broker = new CuttableProxy(nats.port);
  }

  static async start(name: string, nats: NatsServer): Promise<FragileWorker> {
    const worker = new FragileWorker(name, nats);
    worker.#brokerUrl = (await worker.#broker.listen()).replace("tcp:", "nats:");
    await worker.live();
    return worker;
  }

  get url(): string {
    return this.#frontUrl;
  }

  /** Starts its life, with an empty cache, where it was before. */
  async live(): Promise<void> {
    this.#worker = await startTestWorker({ name: this.name, eventPlane: this.#brokerUrl });
    this.#front.target = Number(new URL(this.#worker.url).port);
    this.#frontUrl = (await this.#front.listen()).replace("tcp:", "http:");
  }

  /** Ends it as a power cut would: connections are cut, nothing listens any more, the cache is gone. */
  async kill(): Promise<void> {
    await this.#front.close();
    await this.#worker?.close(0);
    this.#worker = undefined;
  }

  async turn(faults: object): Promise<void> {
    await this.#worker?.post("/debug/faults", faults);
  }

  async cutOffEvents(): Promise<void> {
    await this.#broker.close();
  }

  async reconnectEvents(): Promise<void> {
    this.#broker.target = this.#nats.port;
    await this.#broker.listen();
  }

  /** Every block that it has cached, by its own word. */
  async cachedBlocks(): Promise<string[]> {
    const answer = (await (await this.#worker?.get("/debug/cache"))?.json()) as { runs: { hashes: string[] }[] };
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

/** A gateway that loses patience soon, so that a test need not. */
export function startImpatientGateway(workers: readonly FragileWorker[], nats: NatsServer): Promise<GatewayUnderTest> {
  return startTestGateway({
    worker: workers.map(({ name, url }) => `${name}=${url}`),
    tokenizer: "word",
    blockTokens: 16,
    eventPlane: nats.url,
    // Every worker gets work at any time, so that every cache has something to be known of.
    policy: "round-robin",
    firstByteSeconds: 1,
    gapSeconds: 1,
    healthSeconds: 0.1,
    indexBlocks: 65_536,
  });
}
