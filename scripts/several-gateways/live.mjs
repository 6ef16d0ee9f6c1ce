import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { startLiveFleet } from "./live-fleet.mjs";
import { mean, percentile, writePart } from "./page.mjs";

const MAIN = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
const WORKERS = 4;
const MODEL = "llama-3.1-70b";
const WORKER_WORDS = [
  "--model-path",
  MODEL,
  "--quantization",
  "fp8",
  "--kv-cache-dtype",
  "fp8",
  "--max-num-seqs",
  "32",
];
const GATEWAYS = 2;
const CONCURRENCY = 72;
const ANSWER_TOKENS = 60;
const WARM_UP_SECONDS = 25;
const SECONDS = 85;
/** Apart and sharing take turns, so that a machine that changes meanwhile is not taken for a difference. */
const ORDER = [false, true, true, false];

/** Measures two gateways before one fleet, in real time, and writes the second table. */
export async function measureLive({ policies }) {
  const runs = [];
  for (const policy of policies) {
    for (const [at, isSharing] of ORDER.entries()) {
      const before = loadavg()[0];
      const run = { policy, isSharing, ...(await measured(policy, isSharing, at >> 1)), before };
      runs.push(run);
      process.stderr.write(`${JSON.stringify(run)}\n`);
    }
  }
  return writePart("live", page(runs));
}

async function measured(policy, isSharing, seed) {
  const fleet = await startLiveFleet({
    workers: WORKERS,
    workerWords: WORKER_WORDS,
    gateways: GATEWAYS,
    policy,
    isSharing,
  });
  const folder = mkdtempSync(join(tmpdir(), "warmpath-several-"));
  try {
    const words = ["--url", fleet.url, "--concurrency", CONCURRENCY, "--ramp", 10, "--duration", `${SECONDS}s`];
    const more = ["--max-tokens", ANSWER_TOKENS, "--token-times", "none", "--seed", seed, "--out", folder, "--json"];
    const load = spawn(process.execPath, [MAIN, "load", ...words.map(String), ...more.map(String)], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    let summary = "";
    load.stdout.on("data", (chunk) => (summary += chunk));
    const [code] = await once(load, "exit");
    if (code !== 0) throw new Error(`the load ended with ${code}`);
    const peers = await Promise.all(
      fleet.adminUrls.map(async (url) => (await (await fetch(`${url}/admin/peers`)).json()).messages),
    );
    return { ...sampled(recordsIn(folder)), peers };
  } finally {
    rmSync(folder, { recursive: true, force: true });
    await fleet.stop();
  }
}

function recordsIn(folder) {
  const text = gunzipSync(readFileSync(join(folder, "records.jsonl.gz"))).toString();
  return text.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line)]));
}

/** What was due after the warm-up and before the end. */
function sampled(records) {
  const own = records.filter(
    ({ intendedNs }) =>
      intendedNs >= WARM_UP_SECONDS * 1e9 && intendedNs < SECONDS * 1e9 && Number.isFinite(intendedNs),
  );
  const completed = own.filter(({ account }) => account === "completed");
  const sum = (of) => completed.reduce((total, record) => total + of(record), 0);
  const ttftMs = own.map(({ account, firstContentNs, intendedNs }) =>
    account === "completed" ? (firstContentNs - intendedNs) / 1e6 : Infinity,
  );
  return {
    requests: own.length,
    completed: completed.length,
    hitPercent:
      (100 * sum(({ observedCachedTokens }) => observedCachedTokens)) / sum(({ promptTokens }) => promptTokens),
    p50: percentile(ttftMs, 0.5),
    p95: percentile(ttftMs, 0.95),
    meanSpread: spread(completed),
  };
}

/** How unequal the shares of workers are: the largest, as a multiple of an equal one. */
function spread(records) {
  const counts = new Map();
  for (const { worker } of records) counts.set(worker, (counts.get(worker) ?? 0) + 1);
  return (Math.max(...counts.values()) * counts.size) / records.length;
}

function page(runs) {
  const groups = grouped(runs);
  const rows = [...groups.values()].map((group) => {
    const [{ policy, isSharing }] = group;
    const p95s = group.map(({ p95 }) => p95);
    return `| ${[
      policy,
      isSharing ? "yes" : "no",
      group.reduce((sum, { requests }) => sum + requests, 0),
      group.reduce((sum, { completed }) => sum + completed, 0),
      mean(group.map(({ hitPercent }) => hitPercent)).toFixed(1),
      mean(group.map(({ p50 }) => p50)).toFixed(0),
      mean(p95s).toFixed(0),
      p95s.map((p95) => p95.toFixed(0)).join(", "),
      mean(group.map(({ meanSpread }) => meanSpread)).toFixed(2),
    ].join(" | ")} |`;
  });
  const loads = runs.map(({ before }) => before.toFixed(1)).join(", ");
  return `## Live

Two gateways, each a process of its own, before ${WORKERS} simulated workers in real time (${MODEL} FP8 on H200, 32 sequences each), and a
balancer that gives every request to one of them at random. ${CONCURRENCY} conversations at once, answers of ${ANSWER_TOKENS} tokens,
${WARM_UP_SECONDS} s to warm up and ${SECONDS - WARM_UP_SECONDS} s measured, two runs of each kind in turns, from the client's own records. Gateways
that share did so over a NATS server. All of it, load generator and balancer included, ran on one machine with
${availableParallelism()} cores on which other work was going on: the load averages before the runs were ${loads}.

| policy | share | requests | completed | cached tokens, % | TTFT p50, ms | TTFT p95, ms | p95 by run | largest share |
| --- | --- | ---: | ---: | ---: | ---: | ---: | --- | ---: |
${rows.join("\n")}

The largest share is that of the busiest worker, as a multiple of an equal one.`;
}

function grouped(runs) {
  const groups = new Map();
  for (const run of runs) {
    const key = `${run.policy} ${run.isSharing}`;
    groups.set(key, [...(groups.get(key) ?? []), run]);
  }
  return groups;
}
