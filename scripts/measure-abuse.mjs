/**
 * What abuse by some does to the time to first token of others: `node scripts/measure-abuse.mjs`, after `npm run build`. A real gateway
 * process before two simulated workers serves a client in short turns, with and without a process that holds 2,000 idle connections,
 * drips headers and sends bodies of 1 GB. Prints one line of JSON: the ratio of the two p99 is what counts, beside that of two without.
 */
import { fork, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const ABUSER = fileURLToPath(new URL("./measure-abuse/abuser.mjs", import.meta.url));
const MAIN = fileURLToPath(new URL("../dist/cli/main.js", import.meta.url));
const MODEL = "llama-3.1-8b";
const PROMPT_WORDS = 200;
const OUTPUT_TOKENS = 8;
const MS_PER_TICK = 10;
/** Without abuse, once more without, to see what ratios are worth here, and with. */
const TURNS = ["calm", "control", "abused"];

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "20" },
    requests: { type: "string", default: "640" },
    concurrency: { type: "string", default: "16" },
    speed: { type: "string", default: "1" },
    kinds: { type: "string", default: "idle,drips,bodies" },
  },
});
const [rounds, requests, concurrency] = [values.rounds, values.requests, values.concurrency].map(Number);
const children = [];

try {
  const workers = [];
  for (const name of ["a", "b"]) {
    workers.push(
      await start(["worker", "--port", "0", "--name", name, "--model-path", MODEL, "--speed", values.speed]),
    );
  }
  const flags = workers.flatMap(({ url }) => ["--worker", url]);
  const gateway = await start(["gateway", "--port", "0", "--admin-port", "0", ...flags]);
  process.stdout.write(`${JSON.stringify(await measure(gateway))}\n`);
} finally {
  for (const child of children) child.kill("SIGTERM");
}

async function measure({ url, proxyPids: [pid] }) {
  const abuser = fork(ABUSER, [url, values.kinds]);
  children.push(abuser);
  const times = { calm: [], control: [], abused: [] };
  const cpuMs = { calm: 0, control: 0, abused: 0 };
  const totals = {};
  await round(url, "warm-up");
  for (let i = 0; i < rounds; i++) {
    // What abuse leaves behind falls on both turns without it as often.
    for (const name of i % 2 === 0 ? TURNS : [TURNS[1], TURNS[0], TURNS[2]]) {
      const beforeMs = processCpuMs(pid);
      if (name === "abused") await told(abuser, "begin");
      // Names of one length: a longer one would be more tokens.
      times[name].push(...(await round(url, `turn${TURNS.indexOf(name)}-${i}`)));
      const done = name === "abused" ? await told(abuser, "end") : {};
      for (const [what, count] of Object.entries(done)) totals[what] = (totals[what] ?? 0) + count;
      cpuMs[name] += (processCpuMs(pid) - beforeMs) / rounds;
    }
    process.stderr.write(`round ${i + 1} of ${rounds}\n`);
  }
  const [calm, control, abused] = TURNS.map((name) => figures(times[name]));
  return {
    calm,
    control,
    abused,
    ratio: ratios(abused, calm),
    controlRatio: ratios(control, calm),
    gatewayCpuMsPerTurn: Object.fromEntries(TURNS.map((name) => [name, Math.round(cpuMs[name])])),
    abuse: totals,
    rounds,
    requests,
    concurrency,
  };
}

/** CPU that a process has used, which says what abuse costs even on a machine too busy for times; Linux alone tells. */
function processCpuMs(pid) {
  const ticks = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
  return (Number(ticks[11]) + Number(ticks[12])) * MS_PER_TICK;
}

function ratios(one, other) {
  const of = (name) => Number((one[name] / other[name]).toFixed(3));
  return { p50: of("p50Ms"), p95: of("p95Ms"), p99: of("p99Ms") };
}

/** So many streamed requests of different prompts, some at a time; times to first content in milliseconds. */
async function round(url, topic) {
  const agent = new Agent({ keepAlive: true, maxSockets: concurrency });
  const times = [];
  let next = 0;
  const client = async () => {
    while (next < requests) times.push(await ttftMs(url, `${topic}-${next++}`, agent));
  };
  await Promise.all(Array.from({ length: concurrency }, client));
  agent.destroy();
  return times;
}

async function ttftMs(url, topic, agent) {
  const content = Array.from({ length: PROMPT_WORDS }, (_, i) => `${topic}-${i}`).join(" ");
  const body = JSON.stringify({
    model: MODEL,
    messages: [{ role: "user", content }],
    stream: true,
    max_tokens: OUTPUT_TOKENS,
  });
  const startedMs = performance.now();
  const asking = request(`${url}/v1/chat/completions`, { method: "POST", agent });
  asking.end(body);
  const [response] = await once(asking, "response");
  if (response.statusCode !== 200) throw new Error(`the client was answered with ${response.statusCode}`);
  let firstMs;
  let text = "";
  for await (const chunk of response) {
    text += chunk;
    if (firstMs === undefined && /"content":"[^"]/.test(text)) firstMs = performance.now() - startedMs;
  }
  if (!text.includes("[DONE]") || firstMs === undefined) throw new Error("the client's stream was not completed");
  return firstMs;
}

function figures(times) {
  const sorted = times.toSorted((a, b) => a - b);
  const at = (share) => Number(sorted[Math.ceil(share * sorted.length) - 1].toFixed(2));
  return { n: sorted.length, p50Ms: at(0.5), p95Ms: at(0.95), p99Ms: at(0.99) };
}

async function told(child, word) {
  const answer = once(child, "message");
  child.send(word);
  return (await answer)[0];
}

async function start(words) {
  const child = spawn(process.execPath, [MAIN, ...words, "--json"], { stdio: ["ignore", "pipe", "inherit"] });
  children.push(child);
  const [line] = await once(createInterface({ input: child.stdout }), "line");
  return JSON.parse(line);
}
