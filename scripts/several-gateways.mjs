/**
 * Measures what several gateways before one fleet cost, and what it helps that they tell each other of their requests:
 *
 *   node --import tsx scripts/several-gateways.mjs [--runs N]
 *   node --import tsx scripts/several-gateways.mjs --live [--policy NAME]…
 *
 * The first runs the preset several-gateways on the twin with 1, 2, 4 and 8 gateways, and gives the same bytes every time. The second
 * runs two gateways in real time, and needs a build and nats-server. Each writes its part of docs/several-gateways.md.
 */
import { parseArgs } from "node:util";
import { readExperimentFile } from "../src/cli/commands/run/experiment-file.ts";
import { simulateCell } from "../src/cli/commands/run/simulated-cell.ts";
import { processTerminal } from "../src/cli/terminal.ts";
import { NS_PER_MS } from "../src/core/clock.ts";
import { cellsOf } from "../src/lab/experiment/cells.ts";
import { meanSequenceTokens } from "../src/lab/experiment/workload.ts";
import { sampleRun } from "../src/lab/suite/run-sample.ts";
import { measureLive } from "./several-gateways/live.mjs";
import { mean, percentile, writePart } from "./several-gateways/page.mjs";

const PRESET = "several-gateways";
const GATEWAYS = [1, 2, 4, 8];
const NEWS_DELAY_MS = 2;
const BELIEVED = { prefillSpeed: 1, firstWorkerSpeed: 1 };

const { values } = parseArgs({
  options: { runs: { type: "string" }, live: { type: "boolean" }, policy: { type: "string", multiple: true } },
});
if (values.live) {
  process.stdout.write(`${await measureLive({ policies: values.policy ?? ["kv-cost", "warmpath"] })}\n`);
  process.exit(0);
}
const { experiment } = await readExperimentFile(PRESET, processTerminal());
const runs = Number(values.runs ?? experiment.runs);
const cells = cellsOf({ ...experiment, runs });
const setting = {
  experiment,
  trace: undefined,
  tokensPerSequence: meanSequenceTokens(experiment.workload, undefined, experiment.seed),
};

const rows = [];
for (const arm of experiment.arms) {
  for (const routers of GATEWAYS) {
    for (const newsDelayNs of routers === 1 ? [undefined] : [undefined, NEWS_DELAY_MS * NS_PER_MS]) {
      const variation = { ...BELIEVED, routers, ...(newsDelayNs !== undefined && { newsDelayNs }) };
      const samples = cells
        .filter((cell) => cell.arm.name === arm.name)
        .map((cell) => sampled(simulateCell(setting, cell, variation)));
      rows.push(row(arm.name, routers, newsDelayNs !== undefined, samples));
      process.stderr.write(`${rows.at(-1)}\n`);
    }
  }
}
process.stdout.write(`${writePart("twin", page(rows))}\n`);

function sampled({ records, window }) {
  return sampleRun(records, window, 1, experiment.slo);
}

/** Means over runs, and the spread of p95 TTFT between them. */
function row(arm, gateways, isSharing, samples) {
  const p95s = samples.map(({ ttftMs }) => percentile(ttftMs, 0.95));
  const hitShare = mean(samples.map(({ cachedTokens, promptTokens }) => cachedTokens / promptTokens));
  const kept = mean(samples.map(({ keptSlo, ttftMs }) => keptSlo / ttftMs.length));
  const requests = samples.reduce((sum, { ttftMs }) => sum + ttftMs.length, 0);
  const cellsOfRow = [
    arm,
    gateways,
    gateways === 1 ? "–" : isSharing ? "yes" : "no",
    requests,
    (100 * hitShare).toFixed(1),
    mean(samples.map(({ ttftMs }) => percentile(ttftMs, 0.5))).toFixed(0),
    mean(p95s).toFixed(0),
    `${Math.min(...p95s).toFixed(0)}–${Math.max(...p95s).toFixed(0)}`,
    (100 * kept).toFixed(1),
  ];
  return `| ${cellsOfRow.join(" | ")} |`;
}

function page(lines) {
  return `## On the twin

The preset \`${PRESET}\` (${experiment.about}), ${runs} runs, news ${NEWS_DELAY_MS} ms late.

| policy | gateways | share | requests | cached tokens, % | TTFT p50, ms | TTFT p95, ms | p95 by run | within SLO, % |
| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |
${lines.join("\n")}`;
}
