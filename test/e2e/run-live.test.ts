import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { readResults } from "../../src/lab/results/store.ts";
import { REPOSITORY, runWarmpath } from "../support/run-program.ts";
import { startTestGateway } from "../support/running-gateway.ts";
import { startTestWorker } from "../support/running-worker.ts";
import { until } from "../support/until.ts";

const EXPERIMENT = `
name: small-live
fleet: { model: llama-3.1-8b, gpu: h100, workers: 2, engine: { profile: vllm }, blockTokens: 16, kvPoolTokens: 40000 }
workload:
  conversations: { starters: 2, starterTokens: [200, 300], outputTokensByTurn: [4], tailShare: 0, thinkMs: [1, 2] }
load: { concurrency: [3], rampSeconds: 0 }
arms:
  - { name: rr, policy: round-robin }
  - { name: warmpath, policy: warmpath }
warmUpRequests: 10
windowSeconds: 1
drainSeconds: 5
`;

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "warmpath-live-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
});

function fileOf(content: string): string {
  const path = join(folder, "experiment.yaml");
  writeFileSync(path, content);
  return path;
}

function startWarmpath(words: readonly string[]): ChildProcess {
  const child = spawn(process.execPath, [join(REPOSITORY, "dist", "cli", "main.js"), ...words], { stdio: "pipe" });
  onTestFinished(() => void child.kill("SIGKILL"));
  return child;
}

describe("warmpath run on live targets", () => {
  test("starts a fleet of processes for every cell and leaves none behind", async () => {
    const out = join(folder, "out");
    const { status, stderr } = await runWarmpath(["run", fileOf(EXPERIMENT), "--on", "local", "--out", out]);
    expect({ status, stderr }).toEqual({
      status: 0,
      stderr: "warmpath against rr: policy.name warmpath instead of round-robin\n",
    });
    const { content, problems } = await readResults(out);
    expect(problems).toEqual([]);
    expect(content?.cells.map(({ arm, accounting }) => [arm, accounting.completed > 0])).toEqual([
      ["rr", true],
      ["warmpath", true],
    ]);
  });

  test("runs after_experiment on Ctrl-C", async () => {
    const worker = await startTestWorker({ speed: 1000 });
    onTestFinished(() => worker.close(0));
    const hooks = "live: { hooks: { before_arm: echo switched, after_experiment: echo $WARMPATH_URL > restored } }";
    const file = fileOf(`${EXPERIMENT.replace("windowSeconds: 1", "windowSeconds: 600")}${hooks}\n`);
    const child = startWarmpath(["run", file, "--on", worker.url]);
    const closed = once(child, "close");
    child.stdout?.resume();
    const { stderr } = child;
    if (stderr === null) throw new Error("no output");
    await new Promise<void>((resolve) => {
      createInterface(stderr).on("line", (line) => {
        if (line === "before_arm: switched") resolve();
      });
    });
    child.kill("SIGINT");
    const [, signal] = (await closed) as [number | null, string | null];
    expect(signal).toBe("SIGINT");
    expect(existsSync(join(folder, "restored"))).toBe(true);
    expect(readFileSync(join(folder, "restored"), "utf8").trim()).toBe(worker.url);
  });

  test("gives a gateway its policy back on Ctrl-C", async () => {
    const worker = await startTestWorker({ speed: 1000 });
    const gateway = await startTestGateway({ worker: [worker.url], policy: "random", admission: "engine" });
    onTestFinished(async () => {
      await gateway.close();
      await worker.close(0);
    });
    const experiment = EXPERIMENT.replace("workers: 2", "workers: 1").replace("windowSeconds: 1", "windowSeconds: 600");
    const file = fileOf(`${experiment}live: { adminUrl: "${gateway.adminUrl}" }\n`);
    const child = startWarmpath(["run", file, "--on", gateway.url]);
    const closed = once(child, "close");
    child.stdout?.resume();
    child.stderr?.resume();
    await until("an arm decides", () => gateway.decider.router.policy.name === "round-robin");
    child.kill("SIGINT");
    const [, signal] = (await closed) as [number | null, string | null];
    expect(signal).toBe("SIGINT");
    expect(gateway.decider.router.policy.name).toBe("random");
  });
});
