/** What a gateway does when parts of it, or of its fleet, come and go. */
import type OpenAI from "openai";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { LogLines } from "./log-lines.ts";
import { type FleetOptions, MODEL, ProgramFleet, startProgram } from "./program-fleet.ts";
import { startRecordingEngine } from "./recording-engine.ts";

const EVENT = 'data: {"choices":[{"text":"x"}]}\n\n';

type Accounts = Record<
  "offered" | "completed" | "shed" | "rejected" | "failed" | "timedOut" | "cancelled" | "unfinished",
  number
>;

let fleet: ProgramFleet | undefined;

async function start(options: FleetOptions): Promise<ProgramFleet> {
  fleet = await ProgramFleet.start(options);
  return fleet;
}

afterEach(async () => {
  await fleet?.close();
  fleet = undefined;
});

function ask(client: OpenAI, content: string, limit: number): Promise<AsyncIterable<OpenAI.Chat.ChatCompletionChunk>> {
  const messages = [{ role: "user", content } as const];
  return client.chat.completions.create({ model: MODEL, messages, max_tokens: limit, stream: true });
}

async function chosenBy(client: OpenAI, prompt: string): Promise<string | null> {
  const { response } = await client.completions.create({ model: MODEL, prompt, max_tokens: 2 }).withResponse();
  return response.headers.get("x-warmpath-worker");
}

describe("a worker that is killed under load", () => {
  test("leaves every request in exactly one account, and the accounts are what the client counted", async () => {
    const { client, workers, ...rest } = await start({ events: "http" });
    void rest;
    const counted = { completed: 0, failed: 0 };
    let chunks = 0;
    await Promise.all(
      [...Array(60).keys()].map(async (i) => {
        try {
          for await (const chunk of await ask(client, `question ${i % 9}`, 30)) {
            if (chunk.choices[0]?.delta.content && ++chunks === 200) workers.get("b")?.process.kill("SIGKILL");
          }
          counted.completed++;
        } catch {
          counted.failed++;
        }
      }),
    );
    expect(counted.completed + counted.failed).toBe(60);
    const accounts = await fleet!.admin<Accounts>("/admin/accounts");
    expect(accounts).toMatchObject({
      offered: 60,
      shed: 0,
      rejected: 0,
      timedOut: 0,
      cancelled: 0,
      unfinished: 0,
      ...counted,
    });
    const metrics = await (await fetch(`${fleet!.gateway.url}/metrics`)).text();
    const ended = [...metrics.matchAll(/^warmpath_requests_ended_total\{.*\} (\d+)$/gm)];
    expect(ended.reduce((sum, [, count]) => sum + Number(count), 0)).toBe(60);
    await vi.waitFor(
      async () => {
        const { workers: listed } = await fleet!.admin<{ workers: { name: string; state: string }[] }>(
          "/admin/workers",
        );
        expect(listed.find(({ name }) => name === "b")?.state).toBe("down");
      },
      { timeout: 20_000 },
    );
    expect(await chosenBy(client, "who is left?")).toBe("a");
  });
});

describe("DYN_ROUTER_MODE as the only change", () => {
  test.each([
    ["kv", "kv-cost", 1],
    ["round_robin", "round-robin", 2],
  ])("%s starts the arm %s", async (mode, policy, workersUsed) => {
    const { client } = await start({
      events: "http",
      gatewayFlags: ["--kv-overlap-score-weight", "1.0", "--router-temperature", "0", "--router-reset-states"],
      environment: { DYN_ROUTER_MODE: mode, DYN_KV_CACHE_BLOCK_SIZE: "16" },
    });
    const prompt = Array.from({ length: 200 }, (_, i) => `word${i}`).join(" ");
    const chosen = new Set<string | null>();
    for (let i = 0; i < 4; i++) {
      chosen.add(await chosenBy(client, prompt));
      await vi.waitFor(async () => {
        const { blocks } = await fleet!.admin<{ blocks: number }>("/admin/index");
        expect(blocks).toBeGreaterThanOrEqual(12);
      }, 10_000);
    }
    expect(chosen.size).toBe(workersUsed);
    expect(await fleet!.admin("/admin/settings")).toMatchObject({ policy, blockTokens: 16 });
  });
});

describe("a gateway of several processes", () => {
  test("goes on by power-of-two without its decider, says so, and is itself again afterwards", async () => {
    const { client, gateway } = await start({ events: "http", gatewayFlags: ["--processes", "2"] });
    const decisionOf = async (): Promise<string | null> => {
      const request = client.completions.create({ model: MODEL, prompt: "hello", max_tokens: 2 });
      return (await request.withResponse()).response.headers.get("x-warmpath-decision");
    };
    expect(await decisionOf()).toMatch(/^\d+$/);
    const stream = await ask(client, "a story", 400);
    let pieces = 0;
    let isKilled = false;
    for await (const chunk of stream) {
      if (chunk.choices[0]?.delta.content) pieces++;
      if (isKilled) continue;
      isKilled = true;
      process.kill(gateway.details["deciderPid"] as number, "SIGKILL");
      await vi.waitFor(async () => expect(await decisionOf()).toBe("fallback"), { timeout: 20_000 });
    }
    expect(pieces).toBe(400);
    await vi.waitFor(async () => expect(await decisionOf()).toMatch(/^\d+$/), { timeout: 30_000, interval: 200 });
    const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
    const standIn = /warmpath_stand_in_requests\{account="completed"\} (\d+)/.exec(metrics)?.[1];
    expect(Number(standIn)).toBeGreaterThanOrEqual(1);
  });
});

describe("a gateway that is told to stop", () => {
  test.each([["1"], ["2"]])("with %s process(es) lets a stream finish, and ends with 0", async (processes) => {
    const { client, gateway } = await start({ events: "none", gatewayFlags: ["--processes", processes] });
    let pieces = 0;
    let stopped: Promise<number | null> | undefined;
    for await (const chunk of await ask(client, "a story", 100)) {
      if (chunk.choices[0]?.delta.content) pieces++;
      stopped ??= gateway.stop("SIGTERM");
    }
    expect(pieces).toBe(100);
    expect(await stopped).toBe(0);
  });

  test("does not wait for a process that hangs", async () => {
    const flags = ["--port", "0", "--admin-port", "0", "--event-plane", "none", "--tokenizer", "none"];
    flags.push("--drain-seconds", "1", "--worker", "e=http://127.0.0.1:1");
    const gateway = await startProgram(["gateway", ...flags]);
    const [hung] = gateway.details["proxyPids"] as [number];
    onTestFinished(async () => void (await gateway.stop("SIGKILL")));
    const log = new LogLines(gateway.process);
    process.kill(hung, "SIGSTOP");
    expect(await gateway.stop("SIGTERM")).toBe(0);
    expect(await log.matching(/did not end within 11 s; it is killed$/)).toHaveLength(1);
    expect(() => process.kill(hung, 0)).toThrow("ESRCH");
  });

  test.each([["1"], ["2"]])(
    "with %s process(es) tells whoever it cannot wait for, and says what became of all",
    async (processes) => {
      const engine = await startRecordingEngine((response, { body }) => {
        if (body["prompt"] === "begin") response.writeHead(200, { "content-type": "text/event-stream" }).write(EVENT);
      });
      const flags = ["--port", "0", "--admin-port", "0", "--event-plane", "none", "--tokenizer", "none"];
      flags.push("--drain-seconds", "1", "--processes", processes, "--worker", `e=${engine.url}`);
      const gateway = await startProgram(["gateway", ...flags]);
      onTestFinished(async () => {
        await gateway.stop("SIGKILL");
        await engine.close();
      });
      const log = new LogLines(gateway.process);
      const asked = (prompt: string): Promise<Response> =>
        fetch(`${gateway.url}/v1/completions`, {
          method: "POST",
          body: JSON.stringify({ model: "m", prompt, stream: true }),
        });
      const begun = await asked("begin");
      const unbegun = asked("wait");
      await vi.waitFor(() => expect(engine.received).toHaveLength(2));
      const stopped = gateway.stop("SIGTERM");
      expect(await begun.text()).toMatch(/^data: .*\n\ndata: .*"code":"shutting_down".*\n\n$/);
      const refused = await unbegun;
      expect([refused.status, await refused.text()]).toEqual([503, expect.stringContaining('"code":"shutting_down"')]);
      expect(await stopped).toBe(0);
      expect(await log.matching(/has ended: 2 offered, 2 failed$/)).toHaveLength(1);
    },
  );
});
