import OpenAI from "openai";
import { type RunningWorker, startWorker, type WorkerPlan } from "../../src/cli/commands/worker/compose.ts";
import { readSettings } from "../../src/cli/commands/worker/settings.ts";

export type WorkerFlags = Readonly<Record<string, unknown>>;

/** A worker in this process and an official client of it. */
export interface WorkerUnderTest extends RunningWorker {
  readonly client: OpenAI;
  /** How often its fault switch has crashed it. */
  readonly crashes: () => number;
  readonly get: (path: string) => Promise<Response>;
  readonly post: (path: string, body: unknown) => Promise<Response>;
}

/** Starts a worker on any free port, many times as fast as a real one. */
export async function startTestWorker(
  flags: WorkerFlags = {},
  plan: Partial<Omit<WorkerPlan, "settings">> = {},
): Promise<WorkerUnderTest> {
  let crashes = 0;
  const settings = readSettings({ port: 0, speed: 50, ...flags });
  const worker = await startWorker({ settings, crash: () => crashes++, ...plan });
  const client = new OpenAI({ baseURL: `${worker.url}/v1`, apiKey: "none", maxRetries: 0, timeout: 20_000 });
  return {
    ...worker,
    client,
    crashes: () => crashes,
    get: (path) => fetch(worker.url + path),
    post: (path, body) =>
      fetch(worker.url + path, { method: "POST", body: typeof body === "string" ? body : JSON.stringify(body) }),
  };
}

/** So many different words, one token each. */
export function words(count: number, topic: string): string {
  return Array.from({ length: count }, (_, i) => `${topic}${i}`).join(" ");
}
