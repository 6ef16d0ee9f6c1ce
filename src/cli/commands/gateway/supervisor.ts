import { type ChildProcess, fork } from "node:child_process";
import cluster, { type Worker } from "node:cluster";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { WarmpathError } from "../../../core/errors.ts";
import type { Log } from "./compose.ts";
import { type ProcessMessage, processFile, roleEnvironment } from "./process-roles.ts";
import type { GatewaySettings } from "./settings.ts";

/** A gateway of several processes, started. */
export interface RunningProcesses {
  readonly url: string;
  readonly adminUrl: string;
  readonly deciderPid: number;
  readonly proxyPids: readonly number[];
  close(): Promise<void>;
}

const RESTART_MS = 250;
const LONGEST_RESTART_MS = 5000;

/**
 * Starts one process that decides and several that hold connections, and starts again whichever ends. It does nothing else,
 * so that it has no reason to end before them.
 */
export async function startProcesses(settings: GatewaySettings, log: Log): Promise<RunningProcesses> {
  const folder = await mkdtemp(join(tmpdir(), "warmpath-"));
  const socket = process.platform === "win32" ? `\\\\.\\pipe\\warmpath-${process.pid}` : join(folder, "decider.sock");
  const supervisor = new Supervisor(settings, socket, log);
  try {
    const adminUrl = await supervisor.startDecider();
    const urls = await Promise.all(Array.from({ length: settings.processes }, () => supervisor.startProxy()));
    return {
      url: urls[0],
      adminUrl,
      get deciderPid() {
        return supervisor.deciderPid;
      },
      get proxyPids() {
        return supervisor.proxyPids;
      },
      close: async () => {
        await supervisor.close();
        await rm(folder, { recursive: true, force: true });
      },
    };
  } catch (error) {
    await supervisor.close();
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

class Supervisor {
  readonly #environment: Record<string, string>;
  readonly #log: Log;
  readonly #proxies = new Set<Worker>();
  #decider: ChildProcess | undefined;
  #isClosing = false;

  constructor(settings: GatewaySettings, socket: string, log: Log) {
    this.#log = log;
    this.#environment = roleEnvironment({ settings, socket });
    cluster.setupPrimary({ exec: processFile(new URL("./proxy-process.ts", import.meta.url)), args: [] });
  }

  get deciderPid(): number {
    return this.#decider?.pid ?? 0;
  }

  get proxyPids(): readonly number[] {
    return [...this.#proxies].flatMap(({ process: { pid } }) => pid ?? []);
  }

  startDecider(): Promise<string> {
    const decider = fork(processFile(new URL("./decider-process.ts", import.meta.url)), [], {
      env: { ...process.env, ...this.#environment },
    });
    this.#decider = decider;
    this.#restartAfter(decider, "the decider", () => this.startDecider());
    return this.#serving(decider);
  }

  startProxy(): Promise<string> {
    const proxy = cluster.fork(this.#environment);
    this.#proxies.add(proxy);
    proxy.process.once("exit", () => this.#proxies.delete(proxy));
    this.#restartAfter(proxy.process, "a proxy", () => this.startProxy());
    return this.#serving(proxy.process);
  }

  /** Ends the proxies first: what they have under way still needs the decider. */
  async close(): Promise<void> {
    this.#isClosing = true;
    await Promise.all([...this.#proxies].map((proxy) => ended(proxy.process, "SIGTERM")));
    if (this.#decider !== undefined) await ended(this.#decider, "SIGKILL");
  }

  #restartAfter(child: ChildProcess, what: string, start: () => Promise<string>): void {
    let hasServed = false;
    child.on("message", ({ kind }: ProcessMessage) => (hasServed ||= kind === "serving"));
    child.once("exit", (code, signal) => {
      // One that never got to serve has told why, to whoever waits for it.
      if (this.#isClosing || !hasServed) return;
      this.#log(`${what} (${child.pid}) ended with ${signal ?? code}; starting another`);
      this.#startAgain(what, start, RESTART_MS);
    });
  }

  #startAgain(what: string, start: () => Promise<string>, delayMs: number): void {
    setTimeout(() => {
      if (this.#isClosing) return;
      start().catch((error: Error) => {
        this.#log(`${what} did not start: ${error.message}`);
        this.#startAgain(what, start, Math.min(LONGEST_RESTART_MS, 2 * delayMs));
      });
    }, delayMs);
  }

  #serving(child: ChildProcess): Promise<string> {
    return new Promise((resolve, reject) => {
      child.on("message", (message: ProcessMessage) => {
        if (message.kind === "serving") resolve(message.url);
        else if (message.kind === "failed") reject(new WarmpathError("WP_INVALID_INPUT", message.message));
        else if (message.kind === "log") this.#log(message.line);
      });
      child.once("error", reject);
      child.once("exit", (code) =>
        reject(new WarmpathError("WP_INVALID_STATE", `a process ended with ${code} at its start`)),
      );
    });
  }
}

async function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, "exit");
  child.kill(signal);
  await exit;
}
