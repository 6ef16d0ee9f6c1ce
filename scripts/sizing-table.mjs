/**
 * Writes the table of docs/guides/sizing.md from what the gateway's benchmark printed:
 *
 *   npm run --silent bench -- gateway --json > gateway.json && node scripts/sizing-table.mjs gateway.json
 */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const GUIDE = fileURLToPath(new URL("../docs/guides/sizing.md", import.meta.url));
const [BEGIN, END] = ["<!-- measured -->", "<!-- end measured -->"];

const [path] = process.argv.slice(2);
if (path === undefined) {
  process.stderr.write("usage: node scripts/sizing-table.mjs GATEWAY.json\n");
  process.exit(2);
}
const one = JSON.parse(readFileSync(path, "utf8").trim().split("\n").at(-1));
const two = one.processes2;
const whole = (value) => Math.round(value).toLocaleString("en");
const added = ({ ttftAddedP50Ms, ttftAddedP99Ms }) => `${ttftAddedP50Ms.toFixed(2)} / ${ttftAddedP99Ms.toFixed(2)}`;
const rows = [
  ["", "one process", "`--processes 2`", "bare pass-through"],
  ["---", "--:", "--:", "--:"],
  [
    "chunks per core-second",
    whole(one.gatewayChunksPerCoreSecond),
    whole(two.gatewayChunksPerCoreSecond),
    whole(one.passThroughChunksPerCoreSecond),
  ],
  perThousand("small requests", "cpuMsPer1000Requests"),
  perThousand("chats of 4,000 tokens, 3,500 seen before", "cpuMsPer1000Prompts"),
  ["time to first token added at 100 streams, p50 / p99 ms", added(one), added(two), "–"],
  [
    `resident MB after ${whole(one.requestsBefore)} requests`,
    whole(one.residentMegabytesAfter),
    whole(two.residentMegabytesAfter),
    "–",
  ],
];
const [before, rest] = readFileSync(GUIDE, "utf8").split(BEGIN);
const after = rest.split(END)[1];
const table = rows.map((cells) => `| ${cells.join(" | ")} |`).join("\n");
writeFileSync(GUIDE, `${before}${BEGIN}\n\n${table}\n\n${END}${after}`);

function perThousand(what, figure) {
  const { gateway, passThrough } = one[figure];
  return [`CPU ms per 1,000 ${what}`, whole(gateway), whole(two[figure].gateway), whole(passThrough)];
}
