/**
 * Writes docs/live-beside-simulated.md: the same experiment on the twin and on a local fleet in real time, number beside
 * number. Runs what is not there yet, which takes as long as the windows are; a run that is cut short goes on.
 *
 *   $ npm run build && node scripts/live-beside-simulated.mjs
 *   $ node scripts/live-beside-simulated.mjs --levels 60,120 --window 120 --results results/live-beside-simulated
 */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { gunzipSync } from "node:zlib";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const TOLERANCE = 0.15;

const { values: options } = parseArgs({
  options: {
    preset: { type: "string", default: "h200-sweep" },
    levels: { type: "string", default: "60,120" },
    arms: { type: "string", default: "round-robin,kv,warmpath" },
    "warm-up": { type: "string", default: "60" },
    window: { type: "string", default: "120" },
    drain: { type: "string", default: "60" },
    results: { type: "string", default: join(ROOT, "results", "live-beside-simulated") },
    out: { type: "string", default: join(ROOT, "docs", "live-beside-simulated.md") },
  },
});

const ONLY = ["--levels", options.levels, "--arms", options.arms, "--runs", "1"];
const TIMES = ["--warm-up", options["warm-up"], "--window", options.window, "--drain", options.drain];
const SETTING = [options.preset, ...ONLY, ...TIMES, "--cache-state", "cold"];
const COMMANDS = {
  simulation: ["run", ...SETTING, "--on", "simulation"],
  local: ["run", ...SETTING, "--on", "local", "--warm-up-requests", "0"],
};

const simulated = measured("simulation");
const live = measured("local");
const prompts = comparePrompts();
writeFileSync(options.out, `${page().join("\n")}\n`);
process.stdout.write(`${options.out}\n`);

/** The results on a target, run if they are not there or not complete. */
function measured(target) {
  const folder = join(options.results, target);
  const provenance = readJson(join(folder, "provenance.json"));
  if ((provenance?.finishedAt ?? null) === null) {
    const words = [join(ROOT, "dist", "cli", "main.js"), ...COMMANDS[target], "--out", folder];
    const { status } = spawnSync(process.execPath, words, { stdio: ["ignore", "inherit", "inherit"] });
    if (status !== 0) process.exit(status ?? 1);
  }
  return { ...readJson(join(folder, "results.json")), provenance: readJson(join(folder, "provenance.json")), folder };
}

function readJson(path) {
  return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : undefined;
}

function page() {
  const { host, versions, startedAt } = live.provenance;
  return [
    "# Live beside simulated",
    "",
    "The same experiment twice: on the twin, in virtual time, and on this repository's gateway with simulated workers behind",
    "HTTP, in real time. Requests, seeds, engines and policies are the same; what differs is that the live fleet has sockets,",
    "processes, a tokenizer and a client that shares the machine with it. Written by `scripts/live-beside-simulated.mjs`; no number",
    "is typed in by hand.",
    "",
    `Live on ${host.cores} cores (${host.processor}), Node ${versions.node}, begun ${startedAt}. Each cell is one run: ${options["warm-up"]} s of warm-up,`,
    `a window of ${options.window} s, caches cold at the start.`,
    "",
    "```sh",
    ...Object.values(COMMANDS).map((words) => `warmpath ${words.join(" ")}`),
    "```",
    "",
    ...agreement(),
    "",
    ...signs(),
    "",
    "## The same requests",
    "",
    prompts,
    "",
    ...clients(),
  ];
}

function agreement() {
  const rows = live.cells.map((cell) => {
    const twin = twinOf(cell);
    const pairs = [
      [twin.ttftMs.completed.p50, cell.ttftMs.completed.p50, 0],
      [twin.ttftMs.completed.p95, cell.ttftMs.completed.p95, 0],
      [twin.outputTokensPerSecond, cell.outputTokensPerSecond, 0],
      [twin.requestsPerSecond, cell.requestsPerSecond, 2],
      [100 * twin.cache.observed, 100 * cell.cache.observed, 1],
    ];
    return [cell.arm, cell.level.concurrency, ...pairs.map(([a, b, decimals]) => beside(a, b, decimals))];
  });
  const judged = live.cells.flatMap((cell) => {
    const twin = twinOf(cell);
    return [
      error(twin.ttftMs.completed.p50, cell.ttftMs.completed.p50),
      error(twin.outputTokensPerSecond, cell.outputTokensPerSecond),
    ];
  });
  const within = judged.filter((value) => Math.abs(value) <= TOLERANCE).length;
  const worst = judged.reduce((most, value) => (Math.abs(value) > Math.abs(most) ? value : most), 0);
  return [
    "## Numbers",
    "",
    "Simulated → live, and how much more or less that is.",
    "",
    ...table(["arm", "conversations", "TTFT p50 ms", "TTFT p95 ms", "tokens/s", "requests/s", "cached %"], rows),
    "",
    `Of ${judged.length} values of TTFT p50 and tokens/s, ${within} are within ${100 * TOLERANCE} %; the largest difference is ${percent(worst)}.`,
  ];
}

function signs() {
  const arms = [...new Set(live.cells.map(({ arm }) => arm))];
  const others = arms.filter((arm) => arm !== "warmpath");
  const levels = [...new Set(live.cells.map(({ level }) => level.concurrency))];
  const verdicts = [];
  const rows = levels.flatMap((concurrency) =>
    others.map((other) => {
      const changes = [simulated, live].map(({ cells }) => {
        const [ours, theirs] = ["warmpath", other].map((arm) => {
          const cell = cells.find((one) => one.arm === arm && one.level.concurrency === concurrency);
          return cell.ttftMs.offered.mean ?? Number.NaN;
        });
        return error(theirs, ours);
      });
      const isSame = Math.sign(changes[0]) === Math.sign(changes[1]);
      verdicts.push(isSame);
      return [
        `warmpath against ${other}`,
        concurrency,
        percent(changes[0]),
        percent(changes[1]),
        isSame ? "yes" : "no",
      ];
    }),
  );
  return [
    "## Signs",
    "",
    "Change of the mean TTFT over all offered requests: less is better.",
    "",
    ...table(["comparison", "conversations", "simulated", "live", "same sign"], rows),
    "",
    `${verdicts.filter(Boolean).length} of ${verdicts.length} have the same sign.`,
  ];
}

function clients() {
  const bad = live.cells.filter(({ checks }) => checks.some(({ status }) => status === "failed"));
  const busiest = Math.max(...live.cells.map(({ client }) => client.loopUtilisation));
  const latest = Math.max(...live.cells.map(({ client }) => client.scheduleLagP99Ms));
  return [
    "## The client",
    "",
    `Its event loop was busy for at most ${(100 * busiest).toFixed(0)} % of a cell, and requests left at most ${latest.toFixed(1)} ms late (p99).`,
    ...(bad.length === 0
      ? ["No check failed in any cell."]
      : bad.flatMap(({ id, checks }) =>
          checks.filter(({ status }) => status === "failed").map(({ detail }) => `- ${id}: ${detail}`),
        )),
  ];
}

/** Requests that both have sent, by id, and whether their prompts were as long. */
function comparePrompts() {
  const lengths = new Map(
    recordsOf(simulated.folder).map(({ cell, id, promptTokens }) => [`${cell} ${id}`, promptTokens]),
  );
  let common = 0;
  let equal = 0;
  for (const { cell, id, promptTokens } of recordsOf(live.folder)) {
    const length = lengths.get(`${cell} ${id}`);
    if (length === undefined) continue;
    common += 1;
    if (length === promptTokens) equal += 1;
  }
  const proofs = live.cells.map(({ prompts: proof }) => proof);
  const before = proofs.reduce((sum, { sentBefore }) => sum + sentBefore, 0);
  const same = proofs.reduce((sum, { equalToBefore }) => sum + equalToBefore, 0);
  return [
    `${common} requests were sent in the same cell on both, and ${equal} of them have prompts of the same length.`,
    `Between live cells ${before} prompts were sent more than once, and ${same} of them were equal to the byte.`,
  ].join("\n");
}

function recordsOf(folder) {
  const lines = gunzipSync(readFileSync(join(folder, "records.jsonl.gz")))
    .toString()
    .split("\n");
  return lines.filter((line) => line !== "").map((line) => JSON.parse(line));
}

function twinOf(cell) {
  return simulated.cells.find(({ id }) => id === cell.id);
}

function beside(a, b, decimals) {
  return `${a.toFixed(decimals)} → ${b.toFixed(decimals)} (${percent(error(a, b))})`;
}

function error(expected, value) {
  return value / expected - 1;
}

function percent(value) {
  const shown = (100 * value).toFixed(1);
  return `${value > 0 ? "+" : ""}${shown.replace("-", "−")} %`;
}

function table(titles, rows) {
  const line = (cells) => `| ${cells.join(" | ")} |`;
  return [line(titles), line(titles.map(() => "---")), ...rows.map((row) => line(row.map(String)))];
}
