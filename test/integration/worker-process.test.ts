/** The worker as a process: how it starts, and the ways it ends. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, describe, expect, test } from "vitest";
import { REPOSITORY, runWarmpath } from "../support/run-program.ts";

let child: ChildProcess | undefined;

afterEach(() => {
  child?.kill("SIGKILL");
  child = undefined;
});

/** Starts a worker on a free port and reads the line it says about itself. */
async function start(
  ...flags: string[]
): Promise<{ process: ChildProcess; url: string; said: Record<string, unknown> }> {
  const words = [join(REPOSITORY, "dist", "cli", "main.js"), "worker", "--port", "0", "--json", ...flags];
  const started = spawn(process.execPath, words, { stdio: ["ignore", "pipe", "pipe"] });
  child = started;
  const [line] = (await once(createInterface(started.stdout), "line")) as [string];
  const said = JSON.parse(line) as Record<string, unknown>;
  return { process: started, url: String(said["url"]), said };
}

function ask(url: string, maxTokens: number): Promise<Response> {
  const messages = [{ role: "user", content: "x" }];
  const body = JSON.stringify({ model: "llama-3.1-8b", messages, max_tokens: maxTokens, stream: true });
  return fetch(`${url}/v1/chat/completions`, { method: "POST", body });
}

describe("warmpath worker", () => {
  test("says where it serves and how large it is", async () => {
    const { said } = await start("--name", "a", "--max-num-seqs", "32", "--kv-pool-tokens", "160000");
    expect(said).toMatchObject({
      name: "a",
      model: "llama-3.1-8b",
      blockTokens: 16,
      maxSequences: 32,
      poolTokens: 160_000,
    });
  });

  test("lets an answer under way finish when it is told to stop", async () => {
    const { process: worker, url } = await start();
    const response = await ask(url, 30);
    worker.kill("SIGTERM");
    expect(await response.text()).toMatch(/"finish_reason":"length".*\[DONE\]\n\n$/s);
    expect(await once(worker, "exit")).toEqual([0, null]);
  });

  test("told twice, it ends answers with an error", async () => {
    const { process: worker, url } = await start();
    const response = await ask(url, 20_000);
    worker.kill("SIGTERM");
    await once(worker.stderr ?? worker, "data");
    worker.kill("SIGTERM");
    expect(await response.text()).toContain('"code":"shutting_down"');
    expect(await once(worker, "exit")).toEqual([0, null]);
  });

  test("crashes on purpose with an exit code of its own", async () => {
    const { process: worker, url } = await start("--fault", "crash=3");
    const exited = once(worker, "exit");
    await expect(ask(url, 1000).then((response) => response.text())).rejects.toThrow(/terminated|failed/);
    expect(await exited).toEqual([70, null]);
  });

  test.each([
    [["--model-path", "llama-3.1-70b", "--gpu", "h100"], /does not fit 1 x h100: 85\.5 GB x 0\.9/],
    [["--max-batch-size", "none"], /--max-batch-size must be a number, got "none"/],
    [["--extra-engine-args", "/nowhere.yaml"], /cannot read \/nowhere\.yaml/],
    [["--host", "192.0.2.1"], /cannot listen on port 8001/],
  ])("%j ends with exit code 2 and one line", async (flags, message) => {
    const { status, stdout, stderr } = await runWarmpath(["worker", ...flags]);
    expect({ status, stdout, lines: stderr.trim().split("\n").length }).toEqual({ status: 2, stdout: "", lines: 1 });
    expect(stderr).toMatch(message);
  });

  test("shows its memory plan without serving", async () => {
    const { status, stdout } = await runWarmpath([
      "worker",
      "--engine",
      "trtllm",
      "--model-path",
      "llama-3.1-70b-fp8",
      "--plan",
    ]);
    expect(status).toBe(0);
    expect(stdout).toContain("KV pool (0.90 of what is free)");
  });
});
