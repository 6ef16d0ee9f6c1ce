/**
 * Puts the tables of docs/policy.md between their marks: the league of a suite run, and the two published studies.
 *
 *   node scripts/policy-tables.mjs SUITE_FOLDER H200_SWEEP_FOLDER A100_SCALING_FOLDER
 *
 * The folders are what `warmpath run policy-suite`, `h200-sweep` and `a100-scaling` write with `--out`.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const [suiteFolder, sweepFolder, scalingFolder] = process.argv.slice(2);
if (scalingFolder === undefined) {
  process.stderr.write("policy-tables: give the folders of policy-suite, h200-sweep and a100-scaling\n");
  process.exit(2);
}

const page = fileURLToPath(new URL("../docs/policy.md", import.meta.url));
let text = readFileSync(page, "utf8");
put("league", league(suiteFolder));
put("studies", `${sweep(sweepFolder)}\n\n${scaling(scalingFolder)}`);
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
