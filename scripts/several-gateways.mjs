/**
 * Measures on the twin what several gateways before one fleet cost, and what it helps that they tell each other of their requests:
 *
 *   node --import tsx scripts/several-gateways.mjs [--runs N]
 *
 * runs the preset several-gateways with 1, 2, 4 and 8 gateways and writes docs/several-gateways.md. The same command gives the
 * same bytes.
 */
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { readExperimentFile } from "../src/cli/commands/run/experiment-file.ts";
import { simulateCell } from "../src/cli/commands/run/simulated-cell.ts";
import { processTerminal } from "../src/cli/terminal.ts";
import { NS_PER_MS } from "../src/core/clock.ts";
import { cellsOf } from "../src/lab/experiment/cells.ts";
import { meanSequenceTokens } from "../src/lab/experiment/workload.ts";
import { sampleRun } from "../src/lab/suite/run-sample.ts";

const PRESET = "several-gateways";
const GATEWAYS = [1, 2, 4, 8];
const NEWS_DELAY_MS = 2;
const BELIEVED = { prefillSpeed: 1, firstWorkerSpeed: 1 };

const { values } = parseArgs({ options: { runs: { type: "string" } } });
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
const path = fileURLToPath(new URL("../docs/several-gateways.md", import.meta.url));
writeFileSync(path, page(rows));
process.stdout.write(`${path}\n`);

function sampled({ records, window }) {
  return sampleRun(records, window, 1, experiment.slo);
}

/** Means over runs, and the spread of p95 TTFT between them. */
function row(arm, gateways, isSharing, samples) {
  const p95s = samples.map(({ ttftMs }) => percentile(ttftMs, 0.95));
  const mean = (of) => samples.reduce((sum, sample) => sum + of(sample), 0) / samples.length;
  const hitShare = mean(({ cachedTokens, promptTokens }) => cachedTokens / promptTokens);
  const kept = mean(({ keptSlo, ttftMs }) => keptSlo / ttftMs.length);
  const requests = samples.reduce((sum, { ttftMs }) => sum + ttftMs.length, 0);
  const cellsOfRow = [
    arm,
    gateways,
    gateways === 1 ? "–" : isSharing ? "yes" : "no",
    requests,
    (100 * hitShare).toFixed(1),
    mean(({ ttftMs }) => percentile(ttftMs, 0.5)).toFixed(0),
    (p95s.reduce((sum, p95) => sum + p95, 0) / p95s.length).toFixed(0),
    `${Math.min(...p95s).toFixed(0)}–${Math.max(...p95s).toFixed(0)}`,
    (100 * kept).toFixed(1),
  ];
  return `| ${cellsOfRow.join(" | ")} |`;
}

/** Over all requests offered: one that did not complete is +∞. */
function percentile(latencies, share) {
  const sorted = Float64Array.from(latencies).sort();
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
}

function page(lines) {
  return `# Several gateways before one fleet

All gateways hear every worker's KV events, so all know what is cached. What they do not know by themselves is what the others have
just placed: until a worker's events and load reports tell, each finds the same worker idle. Gateways that share (\`PeerBooks\`, in the
core) tell each other of placements, first tokens, growth and ends, best effort; a peer's requests count as load, and its prompts as
expected in caches.

Measured on the twin: the preset \`${PRESET}\` (${experiment.about}), ${runs} runs, news ${NEWS_DELAY_MS} ms late. Made by
\`node --import tsx scripts/several-gateways.mjs\`; not edited by hand.

| policy | gateways | share | requests | cached tokens, % | TTFT p50, ms | TTFT p95, ms | p95 by run | within SLO, % |
| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |
${lines.join("\n")}

Requests go to gateways at random, as behind a balancer that knows nothing. TTFT is over all requests offered in the window.
`;
}
