/** `npm run bench -- NAME [--json] [--rounds N] [--trace FILE] [--large]`: runs a benchmark and prints its figures. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { benchDecision } from "./decision-bench.ts";
import { benchGateway } from "./gateway/bench.ts";
import { benchIndex } from "./index-bench.ts";
import { benchLoadgen } from "./loadgen/bench.ts";
import { benchTicks } from "./ticks/bench.ts";
import { benchTokenizer } from "./tokenizer/bench.ts";
import { benchTwin } from "./twin/bench.ts";
import { benchWorker } from "./worker/bench.ts";

const BENCHES = ["index", "decision", "gateway", "loadgen", "ticks", "tokenizer", "twin", "worker"];

process.exitCode = main();

function main(): number {
  let parsed;
  try {
    parsed = parseArgs({
      allowPositionals: true,
      options: {
        json: { type: "boolean", default: false },
        rounds: { type: "string" },
        trace: { type: "string" },
        large: { type: "boolean", default: false },
      },
    });
  } catch (error) {
    return usage(error instanceof Error ? error.message : String(error));
  }
  const [name = ""] = parsed.positionals;
  const { json, large, trace } = parsed.values;
  const roundsText = parsed.values.rounds ?? usualRounds(name, large);
  const rounds = Number(roundsText);
  if (!BENCHES.includes(name)) return usage(`unknown benchmark "${name}"; there are ${BENCHES.join(", ")}`);
  if (!Number.isInteger(rounds) || rounds < 1)
    return usage(`--rounds must be a whole number from 1, got ${roundsText}`);
  if (trace !== undefined && !existsSync(trace)) return usage(`no such trace file: ${trace}`);
  const progress = (line: string): void => void process.stderr.write(`${line}\n`);
  const result = run(name, { trace: trace ?? null, rounds, large, progress });
  if (!json) process.stdout.write(`${JSON.stringify(result, null, 2)}\n`);
  // Always last: one line that a program can read.
  process.stdout.write(`${JSON.stringify(result)}\n`);
  return 0;
}

/** A run of the twin lasts a second, all of which one neighbour can spoil: the best of more of them is nearer to the truth. */
function usualRounds(name: string, large: boolean): string {
  return name === "twin" && !large ? "15" : "5";
}

function run(
  name: string,
  options: { trace: string | null; rounds: number; large: boolean; progress: (line: string) => void },
): object {
  if (name === "index") return benchIndex(options);
  if (name === "gateway") return benchGateway(options);
  if (name === "loadgen") return benchLoadgen(options);
  if (name === "decision") return benchDecision(options);
  if (name === "ticks") return benchTicks(options);
  if (name === "tokenizer") return benchTokenizer(options);
  if (name === "worker") return benchWorker(options);
  return benchTwin({ ...options, trace: options.trace ?? knownTrace(options.large) });
}

/** The trace a run of the twin is about, where the data folder has it. */
function knownTrace(large: boolean): string | null {
  const folder = process.env["WARMPATH_DATA"] ?? "data";
  const file = join(folder, "traces", large ? "conversation_trace.jsonl" : "toolagent_head_1000.jsonl");
  return existsSync(file) ? file : null;
}

function usage(problem: string): number {
  process.stderr.write(`bench: ${problem}\n`);
  return 2;
}
