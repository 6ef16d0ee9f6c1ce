/**
 * Makes the baselines that the live page shows from a results folder of `warmpath run`, and writes down which run made them:
 *
 *   npx warmpath run live-demo --out results/live-demo
 *   node --import tsx scripts/make-baselines.mjs results/live-demo
 *
 * writes presets/baselines/live-demo.json. The same command and seed on the twin give the same bytes but for the date.
 */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { baselinesOf } from "../src/cli/live-page/baseline-points.ts";
import { serialiseBaselines } from "../src/lab/results/baselines.ts";
import { readProvenance, readResults } from "../src/lab/results/store.ts";

const DECIMALS = 6;

const [folder] = process.argv.slice(2);
if (folder === undefined) {
  process.stderr.write("usage: node --import tsx scripts/make-baselines.mjs RESULTS_FOLDER\n");
  process.exit(2);
}
const results = required(await readResults(folder));
const provenance = required(await readProvenance(folder));
const { seed, runs, warmUpSeconds, windowSeconds } = results.config;
const made = { versions: provenance.versions, seed, runs, warmUpSeconds, windowSeconds };
const file = { ...rounded(baselinesOf(results, provenance)), made };
const root = fileURLToPath(new URL("..", import.meta.url));
const path = join(root, "presets", "baselines", `${results.experiment}.json`);
writeFileSync(path, serialiseBaselines(file));
execFileSync(join(root, "node_modules", ".bin", "oxfmt"), [path]);
process.stdout.write(`presets/baselines/${results.experiment}.json: ${file.points.length} points\n`);

function required({ content, problems }) {
  if (content !== undefined) return content;
  process.stderr.write(`make-baselines: ${problems[0]}\n`);
  process.exit(2);
}

/** Means of runs have more digits than meaning. */
function rounded(value) {
  if (typeof value === "number") return Number(value.toFixed(DECIMALS));
  if (Array.isArray(value)) return value.map(rounded);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, rounded(inner)]));
}
