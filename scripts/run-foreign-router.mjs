/**
 * Puts somebody else's router in front of two simulated workers and prints what came of it:
 *
 *   python3 -m venv /tmp/router && /tmp/router/bin/pip install sglang-router==0.3.2
 *   node --import tsx scripts/run-foreign-router.mjs --python /tmp/router/bin/python
 *
 * Each policy gets fresh workers and the same conversations. What it printed last is in docs/foreign-router.md.
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { SseScanner } from "../src/wire/sse.ts";

const { values: options } = parseArgs({
  options: {
    python: { type: "string", default: "python3" },
    conversations: { type: "string", default: "24" },
    turns: { type: "string", default: "4" },
    concurrency: { type: "string", default: "8" },
    speed: { type: "string", default: "1" },
  },
});
const [conversations, turns, concurrency] = [options.conversations, options.turns, options.concurrency].map(Number);
const root = fileURLToPath(new URL("..", import.meta.url));
const MODEL = "sim";
const STARTERS = 6;
const POLICIES = ["round_robin", "power_of_two", "cache_aware"];

const words = (count, topic) => Array.from({ length: count }, (_, i) => `${topic}${i}`).join(" ");
const percent = (share) => `${(100 * share).toFixed(1)} %`;
const started = [];

try {
  const rows = [];
  for (const policy of POLICIES) rows.push(await measure(policy));
  report(rows);
} finally {
  for (const child of started) child.kill("SIGKILL");
}

async function measure(policy) {
  const workers = await Promise.all([startWorker("a"), startWorker("b")]);
  const router = await startRouter(policy, workers);
  const tally = { requests: 0, completed: 0, failed: 0, promptTokens: 0, cachedTokens: 0, outputTokens: 0, ttftMs: [] };
  let next = 0;
  const client = async () => {
    for (let id = next++; id < conversations; id = next++) await converse(router.url, id, tally);
  };
  await Promise.all(Array.from({ length: concurrency }, client));
  const served = await Promise.all(workers.map(({ url }) => counters(url)));
  for (const { child } of [router, ...workers]) child.kill("SIGTERM");
  await Promise.all([router, ...workers].map(({ child }) => once(child, "exit")));
  return { policy, tally, served };
}

/** A few turns over one of the shared documents, each with all before it. */
async function converse(url, id, tally) {
  const messages = [{ role: "user", content: `${words(1200, `document${id % STARTERS}-`)} ${words(40, `ask${id}-`)}` }];
  for (let turn = 0; turn < turns; turn++) {
    const text = await ask(url, messages, tally);
    if (text === undefined) return;
    messages.push({ role: "assistant", content: text }, { role: "user", content: words(60, `ask${id}.${turn}-`) });
  }
}

async function ask(url, messages, tally) {
  tally.requests++;
  const body = { model: MODEL, messages, max_tokens: 80, stream: true, stream_options: { include_usage: true } };
  const sentMs = performance.now();
  try {
    const headers = { "content-type": "application/json" };
    const response = await fetch(`${url}/v1/chat/completions`, { method: "POST", headers, body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`status ${response.status}: ${await response.text()}`);
    let text = "";
    let firstMs;
    const scanner = new SseScanner();
    for await (const chunk of response.body) {
      scanner.push(chunk);
      text += new TextDecoder().decode(chunk);
      if (scanner.contentEvents > 0) firstMs ??= performance.now();
    }
    const { usage } = scanner;
    if (usage === undefined) throw new Error("the stream has no usage");
    tally.completed++;
    tally.promptTokens += usage.promptTokens;
    tally.cachedTokens += usage.cachedTokens ?? 0;
    tally.outputTokens += usage.outputTokens;
    tally.ttftMs.push((firstMs ?? performance.now()) - sentMs);
    return [...text.matchAll(/"delta":\{"content":"([^"]*)"/g)].map(([, piece]) => piece).join("");
  } catch (error) {
    tally.failed++;
    process.stderr.write(`request failed: ${error.message}\n`);
    return undefined;
  }
}

async function startWorker(name) {
  const flags = ["--port", "0", "--name", name, "--served-model-name", MODEL, "--speed", options.speed, "--json"];
  const command = ["--import", "tsx", "src/cli/main.ts", "worker", ...flags];
  const child = spawn(process.execPath, command, { cwd: root, stdio: ["ignore", "pipe", "inherit"] });
  started.push(child);
  const [line] = await once(createInterface(child.stdout), "line");
  return { child, url: JSON.parse(line).url };
}

async function startRouter(policy, workers) {
  const port = await freePort();
  const urls = workers.map(({ url }) => url);
  const where = ["--host", "127.0.0.1", "--port", String(port), "--prometheus-port", String(await freePort())];
  const rules = ["--policy", policy, "--disable-retries", "--log-level", "error"];
  const command = ["-m", "sglang_router.launch_router", "--worker-urls", ...urls, ...rules, ...where];
  // It would look for the model's tokenizer on a hub; nobody here has one.
  const env = { ...process.env, HF_HUB_OFFLINE: "1" };
  const child = spawn(options.python, command, { cwd: root, env, stdio: ["ignore", "ignore", "inherit"] });
  started.push(child);
  const url = `http://127.0.0.1:${port}`;
  for (let attempt = 0; attempt < 300; attempt++) {
    if (child.exitCode !== null) throw new Error(`the router ended with ${child.exitCode}`);
    const answer = fetch(`${url}/v1/models`).then((response) => response.json());
    const models = await answer.catch(() => undefined);
    if (models?.data?.length > 0) return { child, url };
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error("the router does not get ready");
}

/** What a worker has counted itself. */
async function counters(url) {
  const text = await (await fetch(`${url}/metrics`)).text();
  const value = (name) => Number(new RegExp(`^${name}\\{[^}]*\\} (\\S+)$`, "m").exec(text)?.[1] ?? 0);
  return {
    requests: value("vllm:e2e_request_latency_seconds_count"),
    promptTokens: value("vllm:prompt_tokens_total"),
    cachedTokens: value("vllm:prefix_cache_hits_total"),
  };
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  return port;
}

function report(rows) {
  const version = execFileSync(options.python, [
    "-c",
    "from importlib.metadata import version as v; print(v('sglang-router'))",
  ]);
  const load = `${conversations} conversations of ${turns} turns over ${STARTERS} documents, ${concurrency} at a time`;
  const print = (line) => process.stdout.write(`${line}\n`);
  print(
    `sglang-router ${String(version).trim()}, Node ${process.version}, ${new Date().toISOString().slice(0, 10)}; ${load}; workers at ${options.speed} times real time`,
  );
  print("");
  print(
    "| policy | offered | completed | failed | worker a / b | cached, by usage | cached, by workers | TTFT p50, p95 |",
  );
  print("| --- | --: | --: | --: | --: | --: | --: | --: |");
  for (const { policy, tally, served } of rows) {
    const sum = (name) => served.reduce((total, worker) => total + worker[name], 0);
    const ttft = tally.ttftMs.toSorted((a, b) => a - b);
    const at = (share) => `${(ttft[Math.ceil(share * ttft.length) - 1] ?? Number.NaN).toFixed(0)} ms`;
    const cells = [
      policy,
      tally.requests,
      tally.completed,
      tally.failed,
      served.map(({ requests }) => requests).join(" / "),
      percent(tally.cachedTokens / tally.promptTokens),
      percent(sum("cachedTokens") / sum("promptTokens")),
      `${at(0.5)}, ${at(0.95)}`,
    ];
    print(`| ${cells.join(" | ")} |`);
  }
}
