import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { REPOSITORY } from "../support/run-program.ts";

/** A demo as a user would start it. */
export interface Demo {
  readonly pageUrl: string;
  readonly adminUrl: string;
  /** Processes that it has started. */
  readonly pids: readonly number[];
  /** Ctrl-C; resolves to the exit code. */
  stop(): Promise<number | null>;
}

/** Starts `warmpath up` on ports of its own, so that it disturbs nobody. */
export async function startDemo(words: readonly string[] = []): Promise<Demo> {
  const first = await freePort();
  const ports = ["--port", "--gateway-port", "--admin-port", "--worker-port"].flatMap((flag, at) => [
    flag,
    String(first + 10 * at),
  ]);
  const child = spawn(process.execPath, [join(REPOSITORY, "dist/cli/main.js"), "up", "--json", ...ports, ...words], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exit = once(child, "exit");
  const line = once(createInterface(child.stdout), "line");
  const [written] = (await Promise.race([line, exit.then(() => ["{}"])])) as [string];
  const announcement = JSON.parse(written) as Partial<Omit<Demo, "stop">>;
  if (announcement.pageUrl === undefined) throw new Error("warmpath up ended before it served");
  return { ...(announcement as Omit<Demo, "stop">), stop: () => stopped(child, exit) };
}

async function stopped(child: ChildProcess, exit: Promise<unknown>): Promise<number | null> {
  if (child.exitCode === null) child.kill("SIGINT");
  await exit;
  return child.exitCode;
}

/** A port somewhere in the upper half, with free ones after it as far as anybody can tell. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return Math.min(port, 60_000);
}

/** Whether a process is there. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
