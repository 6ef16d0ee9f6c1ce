/**
 * `npm run soak -- [--minutes 30] [--streams 200] [--index-blocks N] [--workers N] [--out DIR] [--record]`: load for a long time on a
 * gateway whose index is full; writes soak.json and soak.md, and with `--record` docs/soak.md.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { REPOSITORY, runTool } from "../support/run-program.ts";
import { soakPage } from "./page.ts";
import { soak, type SoakSample } from "./soak.ts";
import { judge } from "./verdict.ts";

/** As many samples as say something about a quarter, and no more than that. */
const SAMPLES = 360;
const BOUNDS = { growth: 0.05, underWay: 0.9 };

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "30" },
    streams: { type: "string", default: "200" },
    workers: { type: "string", default: "4" },
    "index-blocks": { type: "string", default: "4096" },
    out: { type: "string", default: join(REPOSITORY, "results", "soak") },
    record: { type: "boolean", default: false },
  },
});
const seconds = 60 * Number(values.minutes);
const plan = {
  seconds,
  streams: Number(values.streams),
  workers: Number(values.workers),
  indexBlocks: Number(values["index-blocks"]),
  sampleSeconds: Math.max(0.5, seconds / SAMPLES),
};

const startedAt = new Date().toISOString();
const result = await soak(plan, tell);
const findings = judge(result, BOUNDS);
const command = `npm run soak -- --minutes ${values.minutes} --streams ${values.streams}`;
const page = soakPage(result, findings, startedAt, command);
await mkdir(values.out, { recursive: true });
await writeFile(join(values.out, "soak.json"), `${JSON.stringify({ startedAt, findings, ...result }, null, 2)}\n`);
await writePage(join(values.out, "soak.md"));
if (values.record) await writePage(join(REPOSITORY, "docs", "soak.md"));
for (const { what, figures, isGood } of findings) console.log(`${isGood ? "ok " : "NOT"} ${what}: ${figures}`);
if (findings.some(({ isGood }) => !isGood)) process.exitCode = 1;

async function writePage(path: string): Promise<void> {
  await writeFile(path, page);
  await runTool("oxfmt", [path]);
}

function tell({ atSeconds, residentBytes, indexPages, indexMaxPages, offered, unfinished }: SoakSample): void {
  const megabytes = (residentBytes / 1024 / 1024).toFixed(1);
  console.log(
    `${atSeconds.toFixed(0)} s  ${megabytes} MB  index ${indexPages}/${indexMaxPages} pages  ${offered} offered, ${unfinished} under way`,
  );
}
