/**
 * Puts the tables of docs/policy.md between their marks: the league of a suite run, the two published studies, what the gateway's own
 * admission changes and what the lack of KV events does, the suites that are held out, and those for engines.
 *
 *   node scripts/policy-tables.mjs suite=FOLDER sweep=FOLDER scaling=FOLDER plain=FOLDER queue=FOLDER untold=FOLDER holdout=FOLDER \
 *     unseen=FOLDER blind=FOLDER random=FOLDER engines=FOLDER short=FOLDER alike=FOLDER
 *
 * The folders are what `warmpath run` writes with `--out` of `policy-suite`, `h200-sweep`, `a100-scaling`, `policy-suite --policies warmpath`
 * as it is, with `--admission queue` and with `--without-kv-events`, `policy-holdout`, `policy-unseen`, `policy-blind`, `policy-random`, `policy-engines`, `policy-short`
 * and `policy-alike`. A whole suite is also a plain one. Only tables whose folders are given are made again.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const TABLES = [
  { mark: "league", needs: ["suite"], make: league },
  { mark: "studies", needs: ["sweep", "scaling"], make: (a, b) => `${sweep(a)}\n\n${scaling(b)}` },
  { mark: "admission", needs: ["plain", "queue"], make: (plain, queue) => changed(plain, queue, "queue") },
  { mark: "events", needs: ["plain", "untold"], make: ratios },
  { mark: "holdout", needs: ["holdout"], make: league },
  { mark: "unseen", needs: ["unseen"], make: league },
  { mark: "blind", needs: ["blind"], make: league },
  { mark: "random", needs: ["random"], make: league },
  { mark: "engines", needs: ["engines"], make: league },
  { mark: "short", needs: ["short"], make: league },
  { mark: "alike", needs: ["alike"], make: league },
];
const given = Object.fromEntries(process.argv.slice(2).map((word) => word.split("=")));
const folders = { plain: given.suite, ...given };
const wanted = TABLES.filter(({ needs }) => needs.every((name) => folders[name] !== undefined));
if (wanted.length === 0) {
  const choices = TABLES.map(({ needs }) => needs.map((name) => `${name}=FOLDER`).join(" ")).join("; ");
  process.stderr.write(`policy-tables: give ${choices}\n`);
  process.exit(2);
}

/** A difference that no reader would act on. */
const LITTLE = 0.02;

const page = fileURLToPath(new URL("../docs/policy.md", import.meta.url));
let text = readFileSync(page, "utf8");
for (const { mark, needs, make } of wanted) put(mark, make(...needs.map((name) => folders[name])));
writeFileSync(page, text);

function put(mark, content) {
  const between = new RegExp(`<!-- ${mark} -->[\\s\\S]*<!-- end ${mark} -->`);
  if (!between.test(text)) throw new Error(`docs/policy.md has no marks for ${mark}`);
  text = text.replace(between, () => `<!-- ${mark} -->\n\n${content}\n\n<!-- end ${mark} -->`);
}

/** The league's own page less its title, with the sections that speak of the candidate. */
function league(folder) {
  const { suite, quick } = JSON.parse(readFileSync(join(folder, "suite.json"), "utf8"));
  const [top, ...sections] = readFileSync(join(folder, "league.md"), "utf8").split(/^## /m);
  const kept = sections.filter((section) => /^warmpath by (workload|perturbation)/.test(section));
  return [
    `From \`warmpath run ${suite}${quick ? " --quick" : ""}\`.`,
    top.slice(top.indexOf("\n")).trim(),
    ...kept.map((section) => `#### ${section.trim()}`),
  ].join("\n\n");
}

function sweep(folder) {
  const arms = ["round-robin", "kv", "product", "warmpath"];
  const measures = [
    { name: "p95 TTFT", read: (cell) => cell.ttftMs.offered.p95, digits: 0 },
    { name: "tokens/s", read: (cell) => cell.outputTokensPerSecond, digits: 0 },
    { name: "ITL mean", read: (cell) => cell.itlMs.completed.mean, digits: 1 },
    { name: "ITL p95", read: (cell) => cell.itlMs.completed.p95, digits: 1 },
    { name: "ITL p99", read: (cell) => cell.itlMs.completed.p99, digits: 1 },
    { name: "TPOT p95", read: (cell) => cell.tpotMs.completed.p95, digits: 1 },
  ];
  const cells = cellsOf(folder);
  const levels = [...new Set(cells.map(({ level }) => level.concurrency))].sort((a, b) => a - b);
  const runs = new Set(cells.map(({ run }) => run)).size;
  const tables = measures.map(({ name, read, digits }) => {
    const rows = levels.map((level) => [
      level,
      ...arms.map((arm) =>
        mean(
          cells.filter((cell) => cell.arm === arm && cell.level.concurrency === level),
          read,
          digits,
        ),
      ),
    ]);
    return table([`${name} at conversations`, ...arms], rows);
  });
  const shed = cells.reduce((sum, { accounting }) => sum + accounting.shed, 0);
  return [
    `\`h200-sweep\` (mission document 2), means of ${runs} runs; latencies in milliseconds, TTFT over offered, ITL per gap; ${shed} requests shed.`,
    ...tables,
  ].join("\n\n");
}

function scaling(folder) {
  const arms = ["round-robin", "kv", "product", "warmpath"];
  const cells = cellsOf(folder);
  const rows = [2, 4, 8].flatMap((workers) =>
    [
      ["", "grid"],
      ["-jittered", "jittered"],
    ].map(([suffix, arrivals]) => [
      workers,
      arrivals,
      ...arms.map((arm) => {
        const own = cells.filter((cell) => cell.arm === arm + suffix && cell.level.workers === workers);
        const at = (name) => mean(own, (cell) => cell.ttftMs.offered[name], 0);
        return `${at("p50")} / ${at("p95")}`;
      }),
    ]),
  );
  return [
    "`a100-scaling` (mission document 5) with `engine` admission, p50 / p95 TTFT over offered in milliseconds, arrivals on the trace's 3 s grid and jittered inside it:",
    table(["workers", "arrivals", ...arms], rows),
  ].join("\n\n");
}

/** Cells in which the policy does otherwise under other conditions; by little does not count. */
function changed(usualFolder, otherFolder, title) {
  const [usual, other] = [usualFolder, otherFolder].map(scoresOf);
  const measures = ["ttftP95Ms", "e2eMeanMs"];
  const shown = (value) => (value === null ? "not reached" : Math.round(value).toLocaleString("en-US"));
  const farthest = (id) =>
    Math.max(
      ...measures.map((name) => {
        const [before, after] = [usual, other].map((scores) => scores.get(id)[name]);
        if (before === after) return 0;
        return before === null || after === null ? Infinity : Math.abs(after / before - 1);
      }),
    );
  const ids = [...usual.keys()];
  const count = (isMeant) => ids.filter((id) => isMeant(farthest(id))).length;
  const rows = ids
    .filter((id) => farthest(id) > LITTLE)
    .map((id) => [
      id,
      ...measures.flatMap((name) => [usual, other].map((scores) => shown(scores.get(id)[name]))),
      other.get(id).offered - other.get(id).completed,
    ]);
  const same = `${count((by) => by === 0)} of ${ids.length} cells are the same to the last digit`;
  const alike = `${count((by) => by > 0 && by <= LITTLE)} more to within ${LITTLE * 100} %`;
  return [
    verdict(otherFolder),
    `${same}, ${alike}. The others, in milliseconds:`,
    table(["cell", "p95 TTFT", title, "mean E2E", title, "not completed"], rows),
  ].join("\n\n");
}

/** How the policy does under other conditions, by workload: ratios of cells in which both reached an end. */
function ratios(usualFolder, otherFolder) {
  const [usual, other] = [usualFolder, otherFolder].map(scoresOf);
  const workloads = [...new Set([...usual.keys()].map((id) => id.split("/")[0]))];
  const rows = workloads.map((workload) => {
    const ids = [...usual.keys()].filter((id) => id.startsWith(`${workload}/`));
    const figures = ["ttftP95Ms", "e2eMeanMs"].flatMap((name) => {
      const reached = ids.filter((id) => usual.get(id)[name] !== null && other.get(id)[name] !== null);
      const found = reached.map((id) => other.get(id)[name] / usual.get(id)[name]);
      const logarithms = found.reduce((sum, ratio) => sum + Math.log(ratio), 0);
      return [Math.exp(logarithms / found.length), Math.max(...found)].map((ratio) => ratio.toFixed(2));
    });
    return [workload, ids.length, ...figures];
  });
  return [
    verdict(otherFolder),
    "As multiples of the same cell with events (geometric mean, and the largest):",
    table(["workload", "cells", "p95 TTFT", "at most", "mean E2E", "at most"], rows),
  ].join("\n\n");
}

/** How often the policy was worse than round-robin, in the words of its league. */
function verdict(folder) {
  const [found] =
    /^- (.* is worse than round-robin in .*)$/m.exec(readFileSync(join(folder, "league.md"), "utf8")) ?? [];
  if (found === undefined) throw new Error(`${folder} has a league without a verdict`);
  return found;
}

/** What the policy scored in each cell of a suite. */
function scoresOf(folder) {
  const { cells } = JSON.parse(readFileSync(join(folder, "suite.json"), "utf8"));
  return new Map(cells.map(({ id, arms }) => [id, arms.find(({ arm }) => arm === "warmpath")]));
}

function cellsOf(folder) {
  return JSON.parse(readFileSync(join(folder, "results.json"), "utf8")).cells;
}

/** A figure that some run did not reach is not reached. */
function mean(cells, read, digits) {
  const values = cells.map(read);
  if (values.length === 0 || values.includes(null)) return "not reached";
  const value = values.reduce((sum, one) => sum + one, 0) / values.length;
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

function table(head, rows) {
  return [head, head.map(() => "--:"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}
