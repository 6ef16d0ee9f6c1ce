/** Settings that are read again while a gateway serves. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { ReloadOutcome } from "../../../src/gateway/reload.ts";
import { LogLines } from "./log-lines.ts";
import { MODEL, ProgramFleet, startProgram } from "./program-fleet.ts";

let folder: string;
let fleet: ProgramFleet | undefined;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "warmpath-reload-"));
});

afterEach(async () => {
  await fleet?.close();
  fleet = undefined;
  await rm(folder, { recursive: true, force: true });
});

function write(text: string): Promise<void> {
  return writeFile(join(folder, "gateway.yaml"), text);
}

async function start(processes: number, settings: string): Promise<ProgramFleet> {
  await write(settings);
  const gatewayFlags = ["--config", join(folder, "gateway.yaml"), "--processes", String(processes)];
  fleet = await ProgramFleet.start({ events: "none", gatewayFlags });
  return fleet;
}

async function askForReload(adminUrl: string): Promise<{ status: number; outcome: ReloadOutcome }> {
  const response = await fetch(`${adminUrl}/admin/reload`, { method: "POST" });
  return { status: response.status, outcome: (await response.json()) as ReloadOutcome };
}

async function bodyStatus(url: string): Promise<number> {
  const body = JSON.stringify({ model: MODEL, prompt: "x".repeat(2000), max_tokens: 1 });
  const response = await fetch(`${url}/v1/completions`, { method: "POST", body, headers: { connection: "close" } });
  await response.text();
  return response.status;
}

describe.each([[1], [2]])("a gateway with %d process(es) that is told to read its settings again", (processes) => {
  test("serves by them at once, drops nothing, and says what needs a restart", async () => {
    const { client, gateway, adminUrl } = await start(processes, "policy: round-robin\nmaxBodyMegabytes: 1\n");
    const log = new LogLines(gateway.process);
    const messages = [{ role: "user", content: "a story" } as const];
    const stream = await client.chat.completions.create({ model: MODEL, messages, max_tokens: 300, stream: true });
    let pieces = 0;
    let outcome: Promise<readonly string[]> | undefined;
    for await (const chunk of stream) {
      if (chunk.choices[0]?.delta.content) pieces++;
      if (outcome !== undefined) continue;
      await write(
        "policy: kv-cost\nset: [overlap_score_weight=2]\nmaxBodyMegabytes: 0.001\nindexBlocks: 4096\nseed: 7\n",
      );
      gateway.process.kill("SIGHUP");
      outcome = log.matching(/needs a restart/);
      await outcome;
    }
    expect(pieces).toBe(300);
    expect(await outcome).toEqual(["reload: needs a restart: index-blocks, seed"]);
    expect(log.lines).toContain("reload: changed policy, set, max-body-megabytes");
    // The admin API is told by the same message, and may be a moment later than the log.
    await vi.waitFor(
      async () =>
        expect(await fleet!.admin("/admin/reload")).toMatchObject({
          last: {
            isApplied: true,
            changed: ["policy", "set", "max-body-megabytes"],
            needRestart: ["index-blocks", "seed"],
          },
        }),
      10_000,
    );
    expect(await fleet!.admin("/admin/policy")).toMatchObject({
      policy: "kv-cost",
      parameters: { overlap_score_weight: 2 },
    });
    expect(await fleet!.admin("/admin/settings")).toMatchObject({ maxBodyMegabytes: 0.001, indexBlocks: 1_048_576 });
    // Every proxy has heard of it.
    const statuses = await Promise.all(Array.from({ length: 8 }, () => bodyStatus(gateway.url)));
    expect(new Set(statuses)).toEqual(new Set([413]));
    const metrics = await (await fetch(`${adminUrl}/metrics`)).text();
    expect(metrics).toMatch(/^warmpath_reload_last_ok 1$/m);
    expect(metrics).toMatch(/^warmpath_reloads_total\{result="applied"\} 1$/m);
    expect(metrics).toMatch(/^warmpath_reload_need_restart 2$/m);
  });

  test("changes nothing if there is a mistake in them, and says which", async () => {
    const { gateway, adminUrl } = await start(processes, "policy: round-robin\n");
    const log = new LogLines(gateway.process);
    await write("policy: round-robin\nqueueSeconds: soon\nmaxBodyMegabytes: 0.001\n");
    const first = await askForReload(adminUrl);
    expect(first).toMatchObject({ status: 409, outcome: { isApplied: false, changed: [] } });
    expect(first.outcome.problem).toContain("queueSeconds");
    expect(log.lines).toEqual([`reload: ${first.outcome.problem}; nothing has changed`]);
    expect(await bodyStatus(gateway.url)).toBe(200);
    // A knob that the policy does not have is found before anything is changed, too.
    await write("policy: kv-cost\nset: [nonsense=1]\nmaxBodyMegabytes: 0.001\n");
    expect((await askForReload(adminUrl)).outcome.problem).toContain("nonsense");
    expect(await fleet!.admin("/admin/policy")).toMatchObject({ policy: "round-robin" });
    expect(await bodyStatus(gateway.url)).toBe(200);
    const metrics = await (await fetch(`${adminUrl}/metrics`)).text();
    expect(metrics).toMatch(/^warmpath_reload_last_ok 0$/m);
    expect(metrics).toMatch(/^warmpath_reloads_total\{result="refused"\} 2$/m);
  });
});

test("workers come and go with the list of them", async () => {
  const { workers } = await start(1, "{}");
  const [a, b] = [...workers.values()].map(({ url }) => url);
  const rest = "eventPlane: none\nport: 0\nadminPort: 0\n";
  await write(`worker: [a=${a}, b=${b}]\n${rest}`);
  const other = await startProgram(["gateway", "--config", join(folder, "gateway.yaml")]);
  try {
    const adminUrl = other.details["adminUrl"] as string;
    const names = async (): Promise<string[]> => {
      const answer = await fetch(`${adminUrl}/admin/workers`);
      // Workers join as they answer, in no order.
      return ((await answer.json()) as { workers: { name: string }[] }).workers.map(({ name }) => name).sort();
    };
    await vi.waitFor(async () => expect(await names()).toEqual(["a", "b"]), 10_000);
    await write(`worker: [b=${b}]\n${rest}`);
    expect((await askForReload(adminUrl)).outcome).toMatchObject({ changed: ["worker"], needRestart: [] });
    await vi.waitFor(async () => expect(await names()).toEqual(["b"]), 10_000);
    await write(`worker: [b=${b}, a=${a}]\n${rest}`);
    await askForReload(adminUrl);
    await vi.waitFor(async () => expect(await names()).toEqual(["a", "b"]), 10_000);
  } finally {
    await other.stop("SIGTERM");
  }
});
