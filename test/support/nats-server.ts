import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { requireProgram, type SkippableTest } from "./required-component.ts";

const READY = /Server is ready/;
const CONFIG = "nats.conf";

/** A NATS server of its own for a test, on a free port, with JetStream in a folder that goes away with it. */
export class NatsServer {
  readonly url: string;
  readonly #program: string;
  readonly #port: number;
  readonly #folder: string;
  #process: ChildProcess | undefined;

  private constructor(program: string, port: number, folder: string) {
    this.#program = program;
    this.#port = port;
    this.#folder = folder;
    this.url = `nats://127.0.0.1:${port}`;
  }

  /** Starts a server; where the program is missing, the test is skipped. */
  static async start(
    test: SkippableTest,
    { maxPayload = 1024 * 1024 }: { maxPayload?: number } = {},
  ): Promise<NatsServer> {
    // Debian puts it where the PATH of ordinary users does not look.
    const environment = { ...process.env, PATH: `${process.env["PATH"] ?? ""}:/usr/sbin` };
    const program = requireProgram(test, ["nats-server"], environment);
    const folder = await mkdtemp(join(tmpdir(), "warmpath-nats-"));
    await writeFile(join(folder, CONFIG), `max_payload: ${maxPayload}\n`);
    const server = new NatsServer(program, await freePort(), folder);
    await server.again();
    return server;
  }

  get port(): number {
    return this.#port;
  }

  /** Starts the server, or starts it again after `stop`, on the same port. */
  async again(): Promise<void> {
    const place = ["--config", join(this.#folder, CONFIG), "--addr", "127.0.0.1", "--port", String(this.#port)];
    const flags = [...place, "--jetstream", "--store_dir", this.#folder];
    const child = spawn(this.#program, flags, { stdio: ["ignore", "ignore", "pipe"] });
    this.#process = child;
    for await (const line of createInterface(child.stderr)) if (READY.test(line)) break;
    // Whatever it says later must not fill the pipe.
    child.stderr.resume();
    if (child.exitCode !== null) throw new Error(`nats-server ended with ${child.exitCode} before it was ready`);
  }

  /** Ends the server at once, as a crash would. */
  async stop(): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (child === undefined || child.exitCode !== null) return;
    const exited = once(child, "exit");
    child.kill("SIGKILL");
    await exited;
  }

  async close(): Promise<void> {
    await this.stop();
    await rm(this.#folder, { recursive: true, force: true });
  }
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, "close");
  return port;
}
