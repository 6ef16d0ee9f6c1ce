import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import type { SkippableTest } from "../support/required-component.ts";
import { REPOSITORY, runProgram } from "../support/run-program.ts";

const CHECKED = ["deploy", "examples", "Dockerfile", ".dockerignore"];
const CHART = "deploy/helm/warmpath";
const MISSING_TOOL = /is not installed|could not be filled/;
/** A step may have to build its tool, or to start a fleet and wait for its data. */
const LONGEST_MS = 240_000;

const copies: string[] = [];

afterEach(() => {
  for (const copy of copies.splice(0)) rmSync(copy, { recursive: true });
});

/** Everything that is checked, with one change in one file. */
function withChange(file: string, from: string, to: string): string {
  const copy = mkdtempSync(join(tmpdir(), "warmpath-"));
  copies.push(copy);
  for (const name of CHECKED) {
    cpSync(join(REPOSITORY, name), join(copy, name), { recursive: true, verbatimSymlinks: true });
  }
  const path = join(copy, file);
  const text = readFileSync(path, "utf8");
  if (!text.includes(from)) throw new Error(`${file} has no ${from} that could be changed`);
  writeFileSync(path, text.replace(from, to));
  return copy;
}

/** Runs one step; where its tool is missing the test is skipped, unless everything must run. */
async function check(
  context: SkippableTest,
  step: string,
  folder: string,
): Promise<{ status: number | null; stdout: string }> {
  const { status, stdout } = await runProgram(process.execPath, ["scripts/check-deploy.mjs", "--in", folder, step], {
    environment: { WARMPATH_REQUIRE_ALL: "1" },
    longestMs: LONGEST_MS,
  });
  if (MISSING_TOOL.test(stdout) && process.env["WARMPATH_REQUIRE_ALL"] !== "1") context.skip(stdout.trim());
  return { status, stdout };
}

test.each([
  {
    what: "a value that is misspelt",
    step: "chart",
    change: [`${CHART}/examples/simulated-fleet.yaml`, "replicas: 4", "replcas: 4"],
    says: /simulated-fleet: .*additional propert.* 'replcas' not allowed/,
  },
  {
    what: "a setting that the gateway does not have",
    step: "chart",
    change: [`${CHART}/examples/sglang.yaml`, "blockTokens: 16", "blockSize: 16"],
    says: /sglang: .*'blockSize' not allowed/,
  },
  {
    what: "a field that Kubernetes does not have",
    step: "manifests",
    change: [`${CHART}/templates/gateway-deployment.yaml`, "readinessProbe:", "readynessProbe:"],
    says: /'readynessProbe' was unexpected/,
  },
  {
    what: "a field that the Prometheus operator does not have",
    step: "manifests",
    change: [`${CHART}/templates/monitoring.yaml`, "podMetricsEndpoints:", "podMetricEndpoints:"],
    says: /PodMonitor .*podMetricEndpoints/,
  },
  {
    what: "arms that differ in more than the router",
    step: "manifests",
    change: ["examples/dynamo-ab/router-off-deployment.yaml", "replicas: 8", "replicas: 7"],
    says: /the arms differ in more than DYN_ROUTER_MODE/,
  },
  {
    what: "a dashboard that Grafana could not read",
    step: "dashboards",
    change: ["deploy/grafana/fleet.json", '"gridPos"', '"gridpos"'],
    says: /fleet: .*gridpos/,
  },
  {
    what: "a rule that no longer fires",
    step: "rules",
    change: ["deploy/prometheus/alerts.yaml", "> 0.95", "> 1.95"],
    says: /WarmpathKvPoolFull/,
  },
  {
    what: "a rule that is no PromQL",
    step: "rules",
    change: ["deploy/prometheus/alerts.yaml", "sum by (policy) (rate(", "sum by policy) (rate("],
    says: /parse error/,
  },
  {
    what: "a query of a metric that nobody exposes",
    step: "queries",
    change: ["deploy/grafana/routing.json", "warmpath_index_blocks", "warmpath_index_block"],
    says: /routing: "Blocks in the index": nobody exposes warmpath_index_block\b/,
  },
] as const)("$what fails the step $step", async ({ step, change, says }, context: unknown) => {
  const [file, from, to] = change;
  const { status, stdout } = await check(context as SkippableTest, step, withChange(file, from, to));
  expect(stdout).toMatch(says);
  expect(status).toBe(1);
});

test("an unknown step is refused", async () => {
  const { status, stderr } = await runProgram(process.execPath, ["scripts/check-deploy.mjs", "charts"]);
  expect(status).toBe(2);
  expect(stderr).toContain('no step "charts"');
});
