/**
 * Puts the tables of docs/policy.md between their marks: the league of a suite run, the two published studies, and what the
 * gateway's own admission changes.
 *
 *   node scripts/policy-tables.mjs SUITE_FOLDER H200_SWEEP_FOLDER A100_SCALING_FOLDER QUEUE_SUITE_FOLDER
 *
 * The folders are what `warmpath run policy-suite`, `h200-sweep`, `a100-scaling` and `policy-suite --admission queue` (for which
 * `--policies warmpath` is enough) write with `--out`.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const [suiteFolder, sweepFolder, scalingFolder, queueFolder] = process.argv.slice(2);
if (queueFolder === undefined) {
  process.stderr.write(
    "policy-tables: give the folders of policy-suite, h200-sweep, a100-scaling and policy-suite --admission queue\n",
  );
  process.exit(2);
}

/** A difference that no reader would act on. */
const LITTLE = 0.02;

const page = fileURLToPath(new URL("../docs/policy.md", import.meta.url));
let text = readFileSync(page, "utf8");
put("league", league(suiteFolder));
put("studies", `${sweep(sweepFolder)}\n\n${scaling(scalingFolder)}`);
put("admission", admission(suiteFolder, queueFolder));
writeFileSync(page, text);

function put(mark, content) {
  const between = new RegExp(`<!-- ${mark} -->[\\s\\S]*<!-- end ${mark} -->`);
  if (!between.test(text)) throw new Error(`docs/policy.md has no marks for ${mark}`);
  text = text.replace(between, () => `<!-- ${mark} -->\n\n${content}\n\n<!-- end ${mark} -->`);
}

/** The league's own page less its title, with the sections that speak of the candidate. */
function league(folder) {
  const { quick } = JSON.parse(readFileSync(join(folder, "suite.json"), "utf8"));
  const [top, ...sections] = readFileSync(join(folder, "league.md"), "utf8").split(/^## /m);
  const kept = sections.filter((section) => /^warmpath by (workload|perturbation)/.test(section));
  return [
    `From \`warmpath run policy-suite${quick ? " --quick" : ""}\`.`,
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

/** Cells in which the policy does otherwise behind a queue than without one; by little does not count. */
function admission(engineFolder, otherFolder) {
  const engine = scoresOf(engineFolder);
  const other = scoresOf(otherFolder);
  if (engine.admission !== "engine" || other.admission === "engine") throw new Error("give engine first, then another");
  const measures = ["ttftP95Ms", "e2eMeanMs"];
  const shown = (value) => (value === null ? "not reached" : Math.round(value).toLocaleString("en-US"));
  const farthest = (id) =>
    Math.max(
      ...measures.map((name) => {
        const [one, two] = [engine, other].map(({ scores }) => scores.get(id)[name]);
        if (one === two) return 0;
        return one === null || two === null ? Infinity : Math.abs(two / one - 1);
      }),
    );
  const ids = [...engine.scores.keys()];
  const count = (isMeant) => ids.filter((id) => isMeant(farthest(id))).length;
  const rows = ids
    .filter((id) => farthest(id) > LITTLE)
    .map((id) => [
      id,
      ...measures.flatMap((name) => [engine, other].map(({ scores }) => shown(scores.get(id)[name]))),
      other.scores.get(id).offered - other.scores.get(id).completed,
    ]);
  const same = `${count((by) => by === 0)} of ${ids.length} cells are the same to the last digit`;
  const alike = `${count((by) => by > 0 && by <= LITTLE)} more to within ${LITTLE * 100} %`;
  return [
    `${same}, ${alike}. The others, in milliseconds:`,
    table(["cell", "p95 TTFT, engine", other.admission, "mean E2E, engine", other.admission, "not completed"], rows),
  ].join("\n\n");
}

/** What the policy scored in each cell of a suite. */
function scoresOf(folder) {
  const { admission: mode, cells } = JSON.parse(readFileSync(join(folder, "suite.json"), "utf8"));
  return {
    admission: mode,
    scores: new Map(cells.map(({ id, arms }) => [id, arms.find(({ arm }) => arm === "warmpath")])),
  };
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
