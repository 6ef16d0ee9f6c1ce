import type { Command } from "commander";
import { MOONCAKE_BLOCK_TOKENS } from "../../../wire/mooncake-trace.ts";
import type { CacheCeiling } from "../../../workload/trace/infinite-cache.ts";
import { inspectTrace, type LengthSummary, type TraceInspection } from "../../../workload/trace/inspection.ts";
import { describeProvenance, type TraceProvenance } from "../../../workload/trace/provenance.ts";
import { type TableColumn, tableLines } from "../../table.ts";
import type { Terminal } from "../../terminal.ts";
import { subCommand, wholeNumber } from "./options.ts";
import { PUBLIC_TRACES } from "./public-traces.ts";
import { readTraceFile } from "./trace-file.ts";

interface InspectOptions {
  readonly traceBlock: number;
  readonly engineBlock?: number;
  readonly json?: boolean;
}

/** `warmpath trace inspect`: what is to know of a trace before running it. */
export function inspectCommand(terminal: Terminal): Command {
  return subCommand("inspect", "Print rows, duration, lengths, sessions and the best hit rate any cache could reach.", [
    "inspect data/traces/conversation_trace.jsonl",
    "inspect trace.jsonl --engine-block 64 --json",
  ])
    .argument("<file>", "trace in the format of Mooncake; - reads stdin")
    .option(
      "--trace-block <tokens>",
      "tokens that a hash id stands for",
      wholeNumber("--trace-block", 1),
      MOONCAKE_BLOCK_TOKENS,
    )
    .option(
      "--engine-block <tokens>",
      "also the hit ceiling in an engine's full blocks of this size",
      wholeNumber("--engine-block", 1),
    )
    .action(async (file: string, options: InspectOptions) => {
      const { source, sha256, rows, provenance } = await readTraceFile(file, options.traceBlock, terminal);
      const inspection = inspectTrace(rows, options.traceBlock, options.engineBlock);
      const known = PUBLIC_TRACES.find((trace) => trace.sha256 === sha256)?.name ?? null;
      if (options.json === true) {
        const json = inspectionJson(inspection);
        terminal.print(JSON.stringify({ file: source, sha256, publicTrace: known, ...json, provenance }, null, 2));
        return;
      }
      for (const line of [
        `${source}: ${known === null ? "not a public trace" : `the public ${known} trace`}`,
        `sha256      ${sha256}`,
        ...inspectionLines(inspection, provenance, terminal),
      ]) {
        terminal.print(line);
      }
    });
}

function inspectionJson(inspection: TraceInspection): object {
  const { ceiling, engine, ...known } = inspection;
  return {
    ...known,
    infiniteCache: ceilingJson(ceiling),
    engine: engine && { blockTokens: engine.blockTokens, infiniteCache: ceilingJson(engine.ceiling) },
  };
}

function ceilingJson(ceiling: CacheCeiling): object {
  const { hitBlocks, blocks, hitTokens, tokens } = ceiling;
  return { hitBlockShare: share(hitBlocks, blocks), hitTokenShare: share(hitTokens, tokens), ...ceiling };
}

function inspectionLines(inspection: TraceInspection, provenance: TraceProvenance, terminal: Terminal): string[] {
  const { rows, durationSeconds, meanRateRps, waitingRows, sessions, grid, engine, outOfOrderRows } = inspection;
  const lengths = (name: string, summary: LengthSummary): string[] => [
    name,
    ...[summary.mean, summary.min, summary.p5, summary.p50, summary.p95, summary.p99, summary.max].map(whole),
  ];
  const columns: TableColumn[] = [
    { title: "tokens", align: "left" },
    ...["mean", "min", "p5", "p50", "p95", "p99", "max"].map((title) => ({ title, align: "right" as const })),
  ];
  const guessed = sessions.from === "session-id" ? "by session_id" : "reconstructed from shared blocks";
  return [
    `rows        ${whole(rows)}`,
    `duration    ${durationSeconds.toFixed(3)} s${meanRateRps === null ? "" : `, ${meanRateRps.toFixed(2)} rows per second`}`,
    ...(waitingRows === 0 ? [] : [`waiting     ${whole(waitingRows)} more rows wait for the turn before them`]),
    ...(outOfOrderRows === 0 ? [] : [`order       ${whole(outOfOrderRows)} rows are before the row in front of them`]),
    grid === null
      ? "grid        none: rows have times of their own"
      : `grid        ${whole(grid.stepMs)} ms: ${whole(grid.times)} times, ${grid.rowsPerTime.toFixed(1)} rows at each, ${grid.mostRowsPerTime} at most`,
    `sessions    ${whole(sessions.sessions)} (${guessed})`,
    "",
    ...tableLines(
      columns,
      [{ cells: lengths("input", inspection.inputTokens) }, { cells: lengths("output", inspection.outputTokens) }],
      terminal.colours,
    ),
    "",
    ceilingLine(`${inspection.traceBlockTokens}-token ids`, inspection.ceiling),
    ...(engine === null ? [] : [ceilingLine(`full ${engine.blockTokens}-token blocks`, engine.ceiling)]),
    ...(provenance.steps.length === 0 ? [] : [`made from   ${describeProvenance(provenance)}`]),
  ];
}

function ceilingLine(unit: string, { hitBlocks, blocks, distinctBlocks, hitTokens, tokens }: CacheCeiling): string {
  const counts = `${whole(hitBlocks)} of ${whole(blocks)} ${unit}, ${whole(distinctBlocks)} distinct`;
  return `ceiling     ${percent(hitBlocks, blocks)} of blocks (${counts}), ${percent(hitTokens, tokens)} of tokens`;
}

function percent(part: number, all: number): string {
  const found = share(part, all);
  return found === null ? "–" : `${(100 * found).toFixed(1)} %`;
}

function share(part: number, all: number): number | null {
  return all === 0 ? null : part / all;
}

function whole(value: number): string {
  return Math.round(value).toLocaleString("en-US");
}
