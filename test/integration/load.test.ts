/** Load on a gateway and two workers, each a process, as a user runs them. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { loadSettingKeys } from "../../src/cli/commands/load/settings.ts";
import { ACCOUNTS, type Accounting } from "../../src/core/accounts.ts";
import type { RequestRecord } from "../../src/core/request-record.ts";
import { readRecords } from "../../src/lab/results/records-file.ts";
import { conversationLoad, LoadMetrics, readStarters, startLoad } from "../../src/loadgen/index.ts";
import { REPOSITORY, runWarmpath } from "../support/run-program.ts";
import { openStream, piece, startScriptedEndpoint } from "../support/scripted-endpoint.ts";
import { MODEL, ProgramFleet } from "./gateway/program-fleet.ts";

interface Summary {
  readonly accounting: Accounting;
  readonly workers: Readonly<Record<string, number>>;
  readonly cacheHitRate: number;
  readonly interrupted: boolean;
  readonly ttftMs: { readonly completed: { readonly n: number; readonly p50: number } };
  readonly clientHealth: { readonly judgedSeconds: number };
}

const STARTERS = join(REPOSITORY, "presets", "starters");
/** Short answers at many times the speed of an engine: seconds instead of minutes. */
const QUICK = ["--max-tokens", "12", "--think", "0-5"];

let fleet: ProgramFleet;

beforeAll(async () => {
  fleet = await ProgramFleet.start({ events: "http", workerFlags: ["--speed", "50"] });
});

afterAll(() => fleet.close());

function sum(accounts: Accounting): number {
  return ACCOUNTS.reduce((total, account) => total + accounts[account], 0);
}

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "warmpath-load-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

async function recordsIn(folder: string): Promise<RequestRecord[]> {
  const records: RequestRecord[] = [];
  for await (const { record } of readRecords(join(folder, "records.jsonl.gz"))) records.push(record);
  return records;
}

describe("warmpath load", () => {
  test("converses, writes a record per request in one account, and says who answered", async () => {
    const out = temporaryFolder();
    const flags = ["--concurrency", "6", "--duration", "3s", "--drain", "20s", "--out", out, "--json", ...QUICK];
    const { status, stdout, stderr } = await runWarmpath(["load", "--url", fleet.gateway.url, ...flags]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const summary = JSON.parse(stdout) as Summary;
    expect(JSON.parse(readFileSync(join(out, "summary.json"), "utf8"))).toEqual(summary);
    const records = await recordsIn(out);
    expect(sum(summary.accounting)).toBe(summary.accounting.offered);
    expect(records).toHaveLength(summary.accounting.offered);
    expect(new Set(records.map(({ id }) => id)).size).toBe(records.length);
    expect(records.filter(({ account }) => account === "completed")).toHaveLength(summary.accounting.completed);
    expect(Object.keys(summary.workers).sort()).toEqual(["a", "b"]);
    const later = records.filter(({ turn, account }) => turn > 0 && account === "completed");
    expect(later.length).toBeGreaterThan(0);
    expect(later.every(({ observedCachedTokens }) => typeof observedCachedTokens === "number")).toBe(true);
    // Most follow-ups go where their history is; one may go elsewhere for the load there.
    expect(later.some(({ observedCachedTokens }) => Number(observedCachedTokens) > 1000)).toBe(true);
    expect(summary.interrupted).toBe(false);
  });

  test("of several processes is one load: sessions once each, accounts and records of all", async () => {
    const out = temporaryFolder();
    const flags = ["--concurrency", "7", "--processes", "2", "--duration", "3s", "--out", out, "--json", ...QUICK];
    const { status, stdout } = await runWarmpath(["load", "--url", fleet.gateway.url, ...flags]);
    expect(status).toBe(0);
    const { accounting, ttftMs } = JSON.parse(stdout) as Summary;
    const records = await recordsIn(out);
    expect(sum(accounting)).toBe(accounting.offered);
    expect(records).toHaveLength(accounting.offered);
    expect(new Set(records.map(({ id }) => id)).size).toBe(records.length);
    expect(ttftMs.completed.n).toBe(accounting.completed);
    const sessions = new Set(records.map(({ id }) => Math.floor(Number(id) / 64)));
    expect([...sessions].some((one) => one % 2 === 0) && [...sessions].some((one) => one % 2 === 1)).toBe(true);
    expect(readdirSync(out).sort()).toEqual(["records.jsonl.gz", "summary.json"]);
  });

  test("replays a schedule to its end, every row once", async () => {
    const rows = Array.from({ length: 30 }, (_, at) =>
      JSON.stringify({ timestamp: at * 20, input_length: 700, output_length: 5, hash_ids: [at % 3, 10 + at] }),
    );
    const words = ["load", "--url", fleet.gateway.url, "--schedule", "-", "--json"];
    const { status, stdout } = await runWarmpath(words, { stdin: rows.join("\n") });
    expect(status).toBe(0);
    expect((JSON.parse(stdout) as Summary).accounting).toMatchObject({ offered: 30, completed: 30 });
  });

  test("ends with a summary on Ctrl-C, what was under way unfinished, and serves metrics until then", async () => {
    const endless = await startScriptedEndpoint(({ response }) => {
      openStream(response);
      response.write(piece("it never ends"));
    });
    onTestFinished(() => endless.close());
    const main = join(REPOSITORY, "dist", "cli", "main.js");
    const flags = ["--concurrency", "4", "--metrics-port", "0", "--json"];
    const child: ChildProcess = spawn(process.execPath, [main, "load", "--url", endless.url, ...flags]);
    onTestFinished(() => void child.kill("SIGKILL"));
    let stdout = "";
    child.stdout?.on("data", (chunk: Buffer) => (stdout += chunk.toString()));
    const errors = createInterface({ input: child.stderr! });
    const [said] = (await once(errors, "line")) as [string];
    const metricsUrl = said.replace("metrics  ", "");
    let metrics = "";
    while (!/loadgen_ttft_all_seconds_count 4/.test(metrics)) metrics = await (await fetch(metricsUrl)).text();
    for (const share of ["0.5", "0.95", "0.99"]) {
      expect(metrics).toMatch(new RegExp(`loadgen_ttft_all_seconds\\{quantile="${share}"\\} [\\d.e-]+`));
    }
    expect(metrics).toContain("loadgen_in_flight 4");
    child.kill("SIGINT");
    const [warning] = (await once(errors, "line")) as [string];
    expect(warning).toMatch(/4 requests under way have 30 s/);
    const exited = once(child, "exit");
    // At the same moment it would be taken for the first, passed on by somebody.
    const heardMs = performance.now();
    await vi.waitUntil(() => performance.now() - heardMs > 400);
    child.kill("SIGINT");
    expect(await exited).toEqual([0, null]);
    const { accounting, interrupted } = JSON.parse(stdout) as Summary;
    expect(accounting).toMatchObject({ offered: 4, unfinished: 4 });
    expect(interrupted).toBe(true);
  });
});

describe("the library", () => {
  test("keeps its accounts while the concurrency changes and a worker dies", async () => {
    const own = await ProgramFleet.start({ events: "http", workerFlags: ["--speed", "20"] });
    onTestFinished(() => own.close());
    const records: RequestRecord[] = [];
    const starters = await readStarters(STARTERS);
    let awaited = 0;
    let arrived: () => void = () => {};
    const until = (count: number): Promise<void> =>
      new Promise((resolve) => {
        awaited = count;
        arrived = resolve;
      });
    const run = startLoad({
      target: { url: own.gateway.url, model: MODEL },
      ...conversationLoad({
        starters,
        pace: { kind: "closed", concurrency: 4 },
        seed: 2,
        maxTokens: 40,
        thinkMs: [0, 10],
      }),
      onRecord: (record) => {
        if (records.push(record) === awaited) arrived();
      },
    });
    await until(12);
    run.setConcurrency(16);
    expect(run.accounts().unfinished).toBeGreaterThan(4);
    await until(30);
    own.workers.get("b")?.process.kill("SIGKILL");
    await until(80);
    expect(sum(run.accounts())).toBe(run.accounts().offered);
    run.setConcurrency(2);
    await vi.waitUntil(() => run.rolling().inFlight <= 2, { timeout: 30_000 });
    const { totals } = await run.stop({ drainMs: 20_000 });
    const accounts = totals.accounts();
    expect(accounts).toEqual(run.accounts());
    expect(sum(accounts)).toBe(accounts.offered);
    expect(records).toHaveLength(accounts.offered);
    expect(accounts.completed).toBeGreaterThan(50);
    expect(new Set(records.flatMap(({ worker }) => worker ?? []))).toEqual(new Set(["a", "b"]));
  });
});

describe("the reference", () => {
  const text = readFileSync(join(REPOSITORY, "docs", "reference", "load.md"), "utf8").replaceAll(/ +/g, " ");

  test("has every option with its default and what it means", () => {
    for (const { flag, about, default: value } of loadSettingKeys()) {
      const shown = value === "" ? "" : `\`${value}\` `;
      expect(text).toContain(`| \`${flag}\` | ${shown}| ${about.replaceAll("|", "\\|")} |`);
    }
  });

  test("has every metric", async () => {
    const starters = [{ name: "a.md", text: "text" }];
    const pace = { kind: "closed", concurrency: 0 } as const;
    const target = { url: "http://127.0.0.1:1", model: "m" };
    const run = startLoad({ target, ...conversationLoad({ starters, pace, seed: 0 }) });
    const metrics = await new LoadMetrics(run).text();
    await run.stop({ drainMs: 0 });
    const names = [...metrics.matchAll(/^# TYPE (\w+)/gm)].map(([, name]) => name);
    expect(names).toContain("loadgen_ttft_all_seconds");
    expect(names.filter((name) => !text.includes(`| \`${name}\` |`))).toEqual([]);
  });
});
