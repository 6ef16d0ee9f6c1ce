import { WarmpathError } from "../../../core/errors.ts";
import type { WorkerProcesses } from "../../../dashboard/sources.ts";
import type { FleetConfig } from "../../../lab/experiment/types.ts";
import { nextFreePort } from "../../live-page/next-free-port.ts";
import { DemoProcess } from "./demo-process.ts";
import { workerWords } from "./worker-words.ts";

const HOST = "127.0.0.1";
/** Requests are cut off before processes are asked to end, so there is nothing to wait for. */
const DRAIN_WORDS = ["--drain-seconds", "1"];

export interface DemoFleetOptions {
  readonly fleet: FleetConfig;
  readonly workers: number;
  readonly policy: string;
  readonly speed: number;
  /** Where ports are looked for: of the gateway, its admin API, and the first worker. */
  readonly gatewayPort: number;
  readonly adminPort: number;
  readonly workerPort: number;
  /** Told what the processes say, one line each. */
  readonly log: (line: string) => void;
}

interface Worker {
  readonly name: string;
  readonly port: number;
  process: DemoProcess | undefined;
  /** Set while a process is on its way that does not serve yet. */
  starting: Promise<void> | undefined;
}

/** Simulated workers and a gateway in front of them, each a process. */
export class DemoFleet implements WorkerProcesses {
  /** Workers that are not running, and since when. */
  readonly ended: Map<string, number> = new Map();
  readonly #options: DemoFleetOptions;
  readonly #workers: Worker[] = [];
  #gateway: DemoProcess | undefined;
  #isClosing = false;

  private constructor(options: DemoFleetOptions) {
    this.#options = options;
  }

  /** Starts all workers side by side, then the gateway; leaves nothing behind if one of them cannot start. */
  static async start(options: DemoFleetOptions): Promise<DemoFleet> {
    const fleet = new DemoFleet(options);
    try {
      await fleet.#start();
    } catch (error) {
      await fleet.close();
      throw error;
    }
    return fleet;
  }

  get url(): string {
    return String(this.#gateway?.announcement["url"]);
  }

  get adminUrl(): string {
    return String(this.#gateway?.announcement["adminUrl"]);
  }

  /** Process numbers of everything that runs. */
  get pids(): readonly number[] {
    const workers = this.#workers.flatMap(({ process }) => (process?.isRunning === true ? process.pid : []));
    return [...workers, ...(this.#gateway?.isRunning === true ? [this.#gateway.pid] : [])];
  }

  async end(name: string): Promise<void> {
    await this.#worker(name).process?.kill();
  }

  async start(name: string): Promise<void> {
    const worker = this.#worker(name);
    if (worker.process?.isRunning === true) return;
    // Whoever asks again meanwhile, in another tab or by a double click, waits for the same process.
    worker.starting ??= this.#startWorker(worker).finally(() => (worker.starting = undefined));
    await worker.starting;
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    await this.#gateway?.stop();
    await Promise.all(this.#workers.flatMap(({ process }) => process?.stop() ?? []));
  }

  async #start(): Promise<void> {
    const { workers, gatewayPort, adminPort, workerPort, policy, fleet } = this.#options;
    const taken = new Set<number>();
    const take = async (from: number): Promise<number> => {
      const port = await nextFreePort(from, HOST, taken);
      taken.add(port);
      return port;
    };
    const port = await take(gatewayPort);
    const admin = await take(adminPort);
    for (let at = 0; at < workers; at++) {
      const name = `worker-${at + 1}`;
      this.#workers.push({ name, port: await take(workerPort + at), process: undefined, starting: undefined });
    }
    await Promise.all(this.#workers.map((worker) => this.#startWorker(worker)));
    const addresses = ["--port", port, "--admin-port", admin, "--block-tokens", fleet.blockTokens, "--policy", policy];
    const words = [...addresses, "--tokenizer", "word", "--event-plane", "http", "--health-seconds", 0.5];
    this.#gateway = await DemoProcess.start(
      [
        "gateway",
        "--json",
        ...words.map(String),
        ...DRAIN_WORDS,
        ...this.#workers.flatMap((worker) => ["--worker", addressOf(worker)]),
      ],
      {
        said: (line) => this.#say(line),
        ended: () => this.#say("the gateway ended; stop with Ctrl-C and start again"),
      },
    );
  }

  async #startWorker(worker: Worker): Promise<void> {
    const { fleet, speed } = this.#options;
    const { name, port } = worker;
    const words = ["--name", name, "--port", String(port), "--speed", String(speed), ...DRAIN_WORDS];
    worker.process = await DemoProcess.start([...workerWords(fleet), ...words], {
      said: (line) => this.#say(`${name}: ${line}`),
      ended: () => {
        this.ended.set(name, Date.now());
        this.#say(`${name} ended`);
      },
    });
    this.ended.delete(name);
  }

  /** What processes say while they are being stopped is no news. */
  #say(line: string): void {
    if (!this.#isClosing) this.#options.log(line);
  }

  #worker(name: string): Worker {
    const worker = this.#workers.find((one) => one.name === name);
    if (worker !== undefined) return worker;
    throw new WarmpathError("WP_INVALID_INPUT", `no worker is named ${JSON.stringify(name)}`);
  }
}

/** What the gateway is told of a worker, so that it knows its limits before the first report. */
function addressOf({ name, port, process }: Worker): string {
  const { poolBlocks, maxSequences, maxTokensPerStep } = process?.announcement ?? {};
  const limits = Object.entries({
    "kv-blocks": poolBlocks,
    "batch-slots": maxSequences,
    "step-tokens": maxTokensPerStep,
  }).map(([key, limit]) => `${key}=${String(limit)}`);
  return [`${name}=http://${HOST}:${port}`, ...limits].join(",");
}
