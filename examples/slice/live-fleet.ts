import type { AdmissionOptions } from "../../src/core/router-options.ts";
import { createPolicy } from "../../src/core/policy/registry.ts";
import { Router } from "../../src/core/router.ts";
import { LocalDecider } from "../../src/gateway/local-decider.ts";
import { Gateway } from "../../src/gateway/server.ts";
import { MemoryEventPlane } from "../../src/planes/event/memory.ts";
import type { EventPlane } from "../../src/planes/event/types.ts";
import { InlineTokens } from "../../src/planes/tokens/inline.ts";
import { WordTokenizer } from "../../src/tokenizer/word-tokenizer.ts";
import { ConstantSpeedEngine } from "../../src/worker/constant-speed-engine.ts";
import type { Engine } from "../../src/worker/engine.ts";
import { SimulatedWorker } from "../../src/worker/server.ts";
import { WallTimers } from "../../src/worker/timers.ts";

export const MODEL = "warmpath-demo";
const BLOCK_TOKENS = 16;

const KV_BLOCKS = 4096;

export interface LiveFleetOptions {
  readonly policy: string;
  readonly workers: number;
  readonly batchSlots?: number;
  readonly decodeMsPerToken?: number;
  readonly admission?: AdmissionOptions;
  /** Puts something between a worker and its engine. */
  readonly wrapEngine?: (engine: Engine) => Engine;
}

/** Simulated workers behind a gateway, in wall time and over real sockets. */
export class LiveFleet {
  readonly router: Router;
  readonly gateway: Gateway;
  readonly url: string;
  readonly workers: ReadonlyMap<string, SimulatedWorker>;

  readonly #decider: LocalDecider;
  readonly #events: EventPlane;

  private constructor(
    router: Router,
    decider: LocalDecider,
    gateway: Gateway,
    url: string,
    workers: ReadonlyMap<string, SimulatedWorker>,
    events: EventPlane,
  ) {
    this.router = router;
    this.#decider = decider;
    this.gateway = gateway;
    this.url = url;
    this.workers = workers;
    this.#events = events;
  }

  /** Starts workers `worker-1`, `worker-2` and so on, and a gateway in front of them. */
  static async start(options: LiveFleetOptions): Promise<LiveFleet> {
    const { batchSlots = 16, decodeMsPerToken = 1, admission, wrapEngine = (engine) => engine } = options;
    const events = new MemoryEventPlane();
    const tokenizer = new WordTokenizer();
    const timers = new WallTimers();
    const workers = new Map<string, SimulatedWorker>();
    const upstreams = [];
    for (let i = 1; i <= options.workers; i++) {
      const name = `worker-${i}`;
      const publisher = events.publisher(name, { snapshot: () => engine.snapshot() });
      const engine: Engine = new ConstantSpeedEngine({
        timers,
        blockTokens: BLOCK_TOKENS,
        kvBlocks: KV_BLOCKS,
        batchSlots,
        prefillUsPerToken: 20,
        decodeMsPerToken,
        incarnation: `${name}-1`,
        publish: (event) => publisher.publish(event),
      });
      const worker = new SimulatedWorker({ name, model: MODEL, engine: wrapEngine(engine), tokenizer });
      workers.set(name, worker);
      upstreams.push({ name, url: await worker.listen(), model: MODEL, kvBlocks: KV_BLOCKS, batchSlots });
    }
    const router = new Router(createPolicy(options.policy), {
      blockTokens: BLOCK_TOKENS,
      maxReplicas: Math.max(1, options.workers),
      maxBlocks: 65_536,
      ...(admission && { admission }),
    });
    const decider = new LocalDecider({ router, events: () => events });
    for (const upstream of upstreams) decider.fleet.appeared(upstream);
    const gateway = new Gateway({ decider, tokens: new InlineTokens(tokenizer, "exact"), blockTokens: BLOCK_TOKENS });
    return new LiveFleet(router, decider, gateway, await gateway.listen(), workers, events);
  }

  worker(name: string): SimulatedWorker {
    const worker = this.workers.get(name);
    if (worker === undefined) throw new Error(`no worker is named ${name}`);
    return worker;
  }

  async close(): Promise<void> {
    await this.gateway[Symbol.asyncDispose]();
    await this.#decider.close();
    await Promise.all([...this.workers.values()].map((worker) => worker[Symbol.asyncDispose]()));
    await this.#events.close();
  }
}
