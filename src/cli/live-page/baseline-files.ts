import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { WarmpathError } from "../../core/errors.ts";
import type { BaselineArm, BaselineLevel, BaselineRole, Baselines } from "../../dashboard/baselines.ts";
import { type BaselinePoint, type Baselines as BaselinesFile, parseBaselines } from "../../lab/results/baselines.ts";
import { type ReadOutcome, parseProvenance, parseResults } from "../../lab/results/results-json.ts";
import { PROVENANCE_FILE } from "../../lab/results/store.ts";
import { baselinesOf } from "./baseline-points.ts";

/** What the project ships, by the name of the preset it was made from. */
const SHIPPED_FOLDER = fileURLToPath(new URL("../../../presets/baselines/", import.meta.url));

/** Which line of the page a policy is. */
const ROLES: Readonly<Record<string, BaselineRole>> = {
  "round-robin": "round-robin",
  "kv-cost": "kv",
  warmpath: "warmpath",
};

const NO_BASELINES: Baselines = { sources: [], arms: [] };

/** The baselines of a preset that are shipped; none for a preset without. */
export async function shippedBaselines(preset: string): Promise<Baselines> {
  const path = join(SHIPPED_FOLDER, `${preset}.json`);
  return existsSync(path) ? readBaselines([path]) : NO_BASELINES;
}

/** Reads baselines from files: results of `warmpath run`, or what was condensed from them. The first that has a level counts. */
export async function readBaselines(paths: readonly string[]): Promise<Baselines> {
  const files = await Promise.all(paths.map(readBaselinesFile));
  return {
    sources: files.flatMap(({ sources }) => sources),
    arms: armsOf(files.flatMap(({ points }) => points)),
  };
}

async function readBaselinesFile(path: string): Promise<BaselinesFile> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (cause) {
    const { code = String(cause) } = cause as NodeJS.ErrnoException;
    const reason = code === "ENOENT" ? "no such file" : `cannot be read (${code})`;
    throw new WarmpathError("WP_INVALID_INPUT", `--baselines ${path}: ${reason}`, { cause });
  }
  // Results have cells, baselines have points; what has neither is read as results, whose complaints are clearer.
  if (/"points"\s*:/.test(text.slice(0, 4000)) && !/"cells"\s*:\s*\[\s*{/.test(text)) {
    return contentOf(parseBaselines(text, path));
  }
  const results = contentOf(parseResults(text, path));
  const beside = join(dirname(path), PROVENANCE_FILE);
  const provenance = existsSync(beside) ? parseProvenance(await readFile(beside, "utf8"), beside).content : undefined;
  return baselinesOf(results, provenance);
}

function contentOf<Content>({ content, problems }: ReadOutcome<Content>): Content {
  if (content !== undefined) return content;
  throw new WarmpathError("WP_INVALID_INPUT", `--baselines ${problems[0]}`);
}

/** Points by policy and concurrency; what was driven by a rate has no place on a slider. */
function armsOf(points: readonly BaselinePoint[]): BaselineArm[] {
  const arms = new Map<string, Map<number, BaselineLevel>>();
  for (const point of points) {
    const { concurrency } = point.level;
    if (concurrency === undefined || !(point.policy in ROLES)) continue;
    const levels = arms.get(point.policy) ?? new Map<number, BaselineLevel>();
    arms.set(point.policy, levels);
    if (!levels.has(concurrency)) levels.set(concurrency, levelOf(point, concurrency));
  }
  return [...arms].map(([policy, levels]) => ({
    role: ROLES[policy],
    policy,
    levels: [...levels.values()].sort((a, b) => a.concurrency - b.concurrency),
  }));
}

function levelOf(point: BaselinePoint, concurrency: number): BaselineLevel {
  const { ttftMs, tpotMs, itlMs, e2eMs, requestsPerSecond, outputTokensPerSecond, hitShare, errorShare } = point;
  return {
    concurrency,
    runs: point.runs,
    values: {
      ttftP50Ms: ttftMs.p50,
      ttftP95Ms: ttftMs.p95,
      ttftP99Ms: ttftMs.p99,
      tpotP50Ms: tpotMs.p50,
      tpotP95Ms: tpotMs.p95,
      tpotP99Ms: tpotMs.p99,
      itlP50Ms: itlMs.p50,
      itlP95Ms: itlMs.p95,
      itlP99Ms: itlMs.p99,
      e2eP50Ms: e2eMs.p50,
      e2eP95Ms: e2eMs.p95,
      e2eP99Ms: e2eMs.p99,
      requestsPerSecond,
      outputTokensPerSecond,
      hitShare,
      errorShare,
    },
  };
}
