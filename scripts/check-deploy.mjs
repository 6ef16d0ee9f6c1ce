/**
 * Everything about deployment that can be checked without a cluster: `npm run check:deploy`, or `-- chart rules` for those
 * steps alone, `--in FOLDER` for the deploy/, examples/ and Dockerfile of another folder. A step whose tool is missing says so and
 * is skipped; with WARMPATH_REQUIRE_ALL=1 it fails.
 */
import { resolve } from "node:path";
import { checkChart } from "./check-deploy/chart.mjs";
import { checkDashboards } from "./check-deploy/dashboards.mjs";
import { checkImage } from "./check-deploy/image.mjs";
import { checkManifests } from "./check-deploy/manifests.mjs";
import { checkQueries } from "./check-deploy/queries.mjs";
import { checkRules } from "./check-deploy/rules.mjs";
import { MissingTool, repository } from "./check-deploy/tools.mjs";

/** Each takes the folder to check and returns what is wrong, one line each, and what to say of it if nothing is. */
const STEPS = {
  chart: checkChart,
  manifests: checkManifests,
  dashboards: checkDashboards,
  rules: checkRules,
  queries: checkQueries,
  image: checkImage,
};

const words = process.argv.slice(2);
const at = words.indexOf("--in");
const folder = at === -1 ? repository : resolve(words.splice(at, 2)[1] ?? "");
const unknown = words.find((name) => !(name in STEPS));
if (unknown !== undefined) {
  process.stderr.write(`check-deploy: no step "${unknown}"; there are ${Object.keys(STEPS).join(", ")}\n`);
  process.exit(2);
}

const failed = [];
const skipped = [];
for (const [name, check] of Object.entries(STEPS)) {
  if (words.length > 0 && !words.includes(name)) continue;
  const startedMs = performance.now();
  const { problems, note, isSkipped = false } = await check(folder).catch(verdictOf);
  const sign = problems.length > 0 ? "✗" : isSkipped ? "-" : "✓";
  const took = `${((performance.now() - startedMs) / 1000).toFixed(1)} s`;
  process.stdout.write(`${sign} ${name.padEnd(10)} ${took.padStart(7)}  ${problems.length > 0 ? "" : note}\n`);
  for (const problem of problems) process.stdout.write(`    ${problem}\n`);
  if (problems.length > 0) failed.push(name);
  if (isSkipped) skipped.push(name);
}
const left = skipped.length === 0 ? "" : `; not checked: ${skipped.join(", ")}`;
process.stdout.write(`check-deploy: ${failed.length === 0 ? "all good" : `failed: ${failed.join(", ")}`}${left}\n`);
process.exitCode = failed.length === 0 ? 0 : 1;

function verdictOf(error) {
  if (!(error instanceof MissingTool)) return { problems: [error.stack ?? String(error)], note: "" };
  const isRequired = process.env.WARMPATH_REQUIRE_ALL === "1";
  return { problems: isRequired ? [error.message] : [], note: error.message, isSkipped: !isRequired };
}
