import type { Command } from "commander";
import { Rng } from "../../../core/rng.ts";
import { MOONCAKE_BLOCK_TOKENS, type MooncakeRow } from "../../../wire/mooncake-trace.ts";
import { describeProvenance, type TraceStep, withStep } from "../../../workload/trace/provenance.ts";
import {
  filterRows,
  jitterRows,
  type LengthFilter,
  scaleRows,
  sliceRows,
  tileRows,
  type TraceSlice,
} from "../../../workload/trace/transform.ts";
import type { Terminal } from "../../terminal.ts";
import { MOST_ROWS, nonNegativeNumber, positiveNumber, subCommand, usage, wholeNumber } from "./options.ts";
import { printSummary, readTraceFile, writeTrace } from "./trace-file.ts";

interface TransformOptions {
  readonly out?: string;
  readonly traceBlock: number;
  readonly json?: boolean;
}

interface FilterOptions extends TransformOptions {
  readonly minInput?: number;
  readonly maxInput?: number;
  readonly minOutput?: number;
  readonly maxOutput?: number;
  readonly maxTotal?: number;
}

interface SliceOptions extends TransformOptions {
  readonly fromRow?: number;
  readonly toRow?: number;
  readonly from?: number;
  readonly to?: number;
  readonly keepTimes?: boolean;
}

/** `warmpath trace filter`: keeps rows by length. */
export function filterCommand(terminal: Terminal): Command {
  const command = transformCommand("filter", "Keep the rows whose lengths are inside bounds.", [
    "filter toolagent_trace.jsonl --max-input 16384 --out toolagent-16k.jsonl",
  ]);
  for (const [flag, about] of [
    ["--min-input", "least input tokens"],
    ["--max-input", "most input tokens"],
    ["--min-output", "least output tokens"],
    ["--max-output", "most output tokens"],
    ["--max-total", "most input and output tokens together"],
  ] as const) {
    command.option(`${flag} <tokens>`, about, wholeNumber(flag, 0));
  }
  return command.action(async (file: string, options: FilterOptions) => {
    const filter: LengthFilter = defined({
      minInputTokens: options.minInput,
      maxInputTokens: options.maxInput,
      minOutputTokens: options.minOutput,
      maxOutputTokens: options.maxOutput,
      maxTotalTokens: options.maxTotal,
    });
    if (Object.keys(filter).length === 0) throw usage("give at least one bound, such as --max-input 16384");
    await transform(file, options, { step: "filter", ...filter }, (rows) => filterRows(rows, filter), terminal);
  });
}

/** `warmpath trace slice`: keeps a part by row or time. */
export function sliceCommand(terminal: Terminal): Command {
  return transformCommand("slice", "Keep a part of the rows; the first one kept is then at time 0.", [
    "slice conversation_trace.jsonl --from 600 --to 1200 --out ten-minutes.jsonl",
    "slice toolagent_trace.jsonl --to-row 1000",
  ])
    .option("--from-row <number>", "first row, from 0", wholeNumber("--from-row", 0))
    .option("--to-row <number>", "row after the last", wholeNumber("--to-row", 1))
    .option("--from <seconds>", "rows at this time and later", nonNegativeNumber("--from"))
    .option("--to <seconds>", "rows before this time", positiveNumber("--to"))
    .option("--keep-times", "leave timestamps as they are")
    .action(async (file: string, options: SliceOptions) => {
      const slice: TraceSlice = defined({
        fromRow: options.fromRow,
        toRow: options.toRow,
        fromMs: options.from === undefined ? undefined : options.from * 1000,
        toMs: options.to === undefined ? undefined : options.to * 1000,
      });
      if (Object.keys(slice).length === 0) throw usage("give at least one end, such as --to-row 1000 or --to 600");
      const keepTimes = options.keepTimes === true;
      const step: TraceStep = { step: "slice", keepTimes, ...slice };
      await transform(file, options, step, (rows) => sliceRows(rows, slice, keepTimes), terminal);
    });
}

/** `warmpath trace scale`: makes a trace faster or slower. */
export function scaleCommand(terminal: Terminal): Command {
  return transformCommand("scale", "Make the trace faster or slower; delays inside sessions stay.", [
    "scale toolagent_trace.jsonl --speed 0.8 --out toolagent-slow.jsonl",
  ])
    .requiredOption("--speed <factor>", "2 is twice as fast, 0.8 takes 1.25 times as long", positiveNumber("--speed"))
    .action(async (file: string, options: TransformOptions & { readonly speed: number }) => {
      const { speed } = options;
      await transform(file, options, { step: "scale", speed }, (rows) => scaleRows(rows, speed), terminal);
    });
}

/** `warmpath trace jitter`: spreads rows inside the grid of timestamps. */
export function jitterCommand(terminal: Terminal): Command {
  return transformCommand("jitter", "Spread rows of one timestamp until the next; the public traces step by 3 s.", [
    "jitter conversation_trace.jsonl --seed 1 --out conversation-jittered.jsonl",
  ])
    .option("--seed <number>", "the same seed gives the same times", wholeNumber("--seed", 0), 1)
    .action(async (file: string, options: TransformOptions & { readonly seed: number }) => {
      const { seed } = options;
      await transform(file, options, { step: "jitter", seed }, (rows) => jitterRows(rows, new Rng(seed)), terminal);
    });
}

/** `warmpath trace tile`: repeats a trace with ids of its own in each copy. */
export function tileCommand(terminal: Terminal): Command {
  return transformCommand("tile", "Repeat the trace one copy after the other, ids renamed in each.", [
    "tile toolagent_head_1000.jsonl --copies 24 --out toolagent-tiled.jsonl",
  ])
    .requiredOption("--copies <number>", "how often it is there in the end", wholeNumber("--copies", 1, MOST_ROWS))
    .action(async (file: string, options: TransformOptions & { readonly copies: number }) => {
      const { copies } = options;
      const tile = (rows: readonly MooncakeRow[]): MooncakeRow[] => {
        if (rows.length * copies > MOST_ROWS) {
          throw usage(`--copies: ${copies} copies of ${rows.length} rows are more than ${MOST_ROWS}`);
        }
        return tileRows(rows, copies);
      };
      await transform(file, options, { step: "tile", copies }, tile, terminal);
    });
}

function transformCommand(name: string, about: string, examples: readonly string[]): Command {
  return subCommand(name, about, examples)
    .argument("<file>", "trace in the format of Mooncake; - reads stdin")
    .option("--out <file>", "write the trace there, and its provenance beside it (default: stdout)")
    .option(
      "--trace-block <tokens>",
      "tokens that a hash id stands for",
      wholeNumber("--trace-block", 1),
      MOONCAKE_BLOCK_TOKENS,
    );
}

async function transform(
  file: string,
  { out, traceBlock, json }: TransformOptions,
  step: TraceStep,
  change: (rows: readonly MooncakeRow[]) => MooncakeRow[],
  terminal: Terminal,
): Promise<void> {
  const read = await readTraceFile(file, traceBlock, terminal);
  const rows = change(read.rows);
  if (rows.length === 0) throw usage(`no row of ${read.source} is left (it has ${read.rows.length})`);
  const provenance = withStep(read.provenance, step, rows.length);
  const sha256 = await writeTrace(rows, out, provenance, terminal);
  const record = { out: out ?? null, rows: rows.length, sha256, provenance };
  const summary = json === true ? JSON.stringify(record, null, 2) : describeProvenance(provenance);
  printSummary([summary], out, terminal);
}

function defined<Value>(fields: Readonly<Record<string, Value | undefined>>): Record<string, Value> {
  return Object.fromEntries(Object.entries(fields).filter((entry): entry is [string, Value] => entry[1] !== undefined));
}
