import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import { Command } from "commander";
import { WarmpathError } from "../../../core/errors.ts";
import { createPolicy, POLICIES } from "../../../core/policy/registry.ts";
import type { ParameterSpec, PolicyParameters } from "../../../core/policy/types.ts";
import type { DecisionRecord } from "../../../core/record/decision-record.ts";
import type { Terminal } from "../../terminal.ts";
import { EXAMPLE_DECISION } from "./example.ts";
import { type DecisionInput, inputFieldLines, parseDecisionInput } from "./input.ts";
import { type DecisionExplanation, decisionInput, explainDecision, explainRecorded } from "./record.ts";
import { explanationLines, requestLines } from "./render.ts";
import { type ReplayedRequest, replayRequest } from "./replay.ts";

const DEFAULT_POLICY = "kv-cost";
const WHAT_NEXT =
  "Try: npx warmpath explain --example --policy round-robin, or your own numbers: npx warmpath explain --help";

interface ExplainOptions {
  readonly example?: boolean;
  readonly run?: string;
  readonly request?: string;
  readonly cell?: string;
  readonly json?: boolean;
  readonly policy?: string;
  readonly set?: readonly Setting[];
}

interface PolicyRequest {
  readonly name: string;
  readonly parameters: PolicyParameters;
}

type Setting = readonly [name: string, value: number | string];

/** `warmpath explain`: one routing decision, candidate by candidate. */
export function explainCommand(terminal: Terminal): Command {
  return new Command("explain")
    .description("Explain one routing decision, candidate by candidate.")
    .argument("[file]", "JSON file with a request and its candidates; - reads stdin")
    .option("--example", "explain the worked example: 100 blocks, three workers")
    .option("--run <folder>", "explain a request of a finished run on the twin: its cell is run again up to there")
    .option("--request <id>", "with --run: the id it has in records.jsonl.gz")
    .option("--cell <id>", "with --run: the cell, such as warmpath/concurrency-60-workers-3/run-1")
    .option("--policy <name>", "decide by this policy instead of the file's")
    .option("--set <name=value>", "set a knob of the policy; may be repeated", collectSetting)
    .option("--json", "print the record as JSON")
    .helpOption("-h, --help", "print this help")
    .addHelpText("after", helpText)
    .action(async (file: string | undefined, options: ExplainOptions) => {
      if (options.run !== undefined) return explainRun(options.run, file, options, terminal);
      if (options.request !== undefined || options.cell !== undefined)
        throw usage("--request and --cell go with --run");
      const input = await readInput(file, options.example === true, terminal);
      const { name, parameters } = policyRequest(input, options);
      const explanation = explainDecision(createPolicy(name, parameters), input);
      if (options.json === true) {
        terminal.print(JSON.stringify(explanation, null, 2));
        return;
      }
      for (const line of explanationLines(explanation, Object.keys(parameters), terminal.colours)) terminal.print(line);
      if (options.example === true) terminal.print(terminal.colours.dim(`\n${WHAT_NEXT}`));
    });
}

/** Every attempt to place a request of a finished run; with another policy or knob, what that would have done there. */
async function explainRun(
  folder: string,
  file: string | undefined,
  options: ExplainOptions,
  terminal: Terminal,
): Promise<void> {
  if (file !== undefined || options.example === true) throw usage("give either --run, a file or --example");
  if (options.request === undefined) throw usage("--run needs --request: the id of a request in records.jsonl.gz");
  const replayed = await replayRequest(folder, options.request, options.cell);
  const isOther = options.policy !== undefined || options.set !== undefined;
  const explained = replayed.attempts.map((record) =>
    isOther ? decidedOtherwise(record, options) : explainRecorded(record),
  );
  if (options.json === true) {
    terminal.print(JSON.stringify(replayedJson(replayed, explained), null, 2));
    return;
  }
  for (const [at, explanation] of explained.entries()) {
    if (at > 0) terminal.print("");
    const shown = Object.keys(isOther ? policyRequest(decisionInput(replayed.attempts[at]), options).parameters : {});
    for (const line of requestLines(replayed, at)) terminal.print(line);
    for (const line of explanationLines(explanation, shown, terminal.colours)) terminal.print(line);
    if (isOther) terminal.print(`instead the run sent it to ${replayed.attempts[at].chosen ?? "nobody"}`);
  }
}

function decidedOtherwise(record: DecisionRecord, options: ExplainOptions): DecisionExplanation {
  const input = decisionInput(record);
  const { name, parameters } = policyRequest(input, options);
  return explainDecision(createPolicy(name, parameters), input);
}

function replayedJson({ cell, record, attempts }: ReplayedRequest, explained: readonly DecisionExplanation[]): unknown {
  // When each token came is long and in records.jsonl.gz already.
  const { tokenTimes: _times, ...request } = record;
  return { cell, request, attempts: attempts.map((decision, at) => ({ decision, explanation: explained[at] })) };
}

async function readInput(file: string | undefined, example: boolean, terminal: Terminal): Promise<DecisionInput> {
  if (example && file !== undefined) throw usage(`give either --example or a file, not both (got ${file})`);
  if (example) return parseDecisionInput(EXAMPLE_DECISION, "the built-in example");
  if (file === undefined) throw usage("give a JSON file, - for stdin, --example, or --run with a results folder");
  const source = file === "-" ? "stdin" : basename(file);
  const written = file === "-" ? await terminal.readStdin() : await readText(file);
  return parseDecisionInput(parseJson(written, source), source);
}

async function readText(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    const reason = READ_FAILURES[code ?? ""] ?? `cannot be read (${code ?? String(cause)})`;
    throw usage(`${file}: ${reason}`, cause);
  }
}

const READ_FAILURES: Readonly<Record<string, string>> = {
  ENOENT: "no such file",
  EISDIR: "is a folder, not a file",
  EACCES: "may not be read",
};

function parseJson(written: string, source: string): unknown {
  try {
    return JSON.parse(written);
  } catch (cause) {
    const reason = written.trim() === "" ? "it is empty" : (cause as SyntaxError).message;
    throw usage(`the input is not JSON: ${reason} (${source})`, cause);
  }
}

/** The file's policy and knobs, overridden by the options; another policy does not inherit the knobs of the file's. */
function policyRequest(input: DecisionInput, options: ExplainOptions): PolicyRequest {
  const ofFile = input.policy ?? DEFAULT_POLICY;
  const name = options.policy ?? ofFile;
  const inherited: PolicyParameters = name === ofFile ? (input.parameters ?? {}) : {};
  return { name, parameters: { ...inherited, ...Object.fromEntries(options.set ?? []) } };
}

function collectSetting(written: string, earlier: readonly Setting[] = []): readonly Setting[] {
  const [, name, value] = /^([^=\s]+)=(.+)$/.exec(written) ?? [];
  if (name === undefined || value === undefined) throw usage(`--set must be name=value, got "${written}"`);
  const number = Number(value);
  return [...earlier, [name, Number.isFinite(number) && value.trim() !== "" ? number : value]];
}

function usage(message: string, cause?: unknown): WarmpathError {
  return new WarmpathError("WP_INVALID_INPUT", message, { cause });
}

function helpText(): string {
  const policies = POLICIES.flatMap(({ name, about, parameters }) => [
    `  ${name.padEnd(18)} ${about}`,
    ...Object.entries(parameters).map(([knob, spec]) => knobLine(knob, spec)),
  ]);
  return [
    "",
    "Fields of the file (? may be left out; unknown fields are an error):",
    ...inputFieldLines(),
    "",
    "Policies, and the knobs of --set with their defaults:",
    ...policies,
    "",
    "Examples:",
    "  $ warmpath explain --example",
    "  $ warmpath explain --example --set overlap_score_weight=0.1 --json",
    `  $ echo '{"request":{"promptBlocks":8},"candidates":[{"worker":"a","cachedBlocks":6,"decodeBlocks":3}]}' \\`,
    "      | warmpath explain - --policy product",
    "  $ warmpath run h200-sweep --levels 60 --runs 1 --out results/sweep",
    "  $ warmpath explain --run results/sweep --cell warmpath/concurrency-60-workers-3/run-1 --request 64",
  ].join("\n");
}

function knobLine(name: string, spec: ParameterSpec): string {
  return `    ${`${name}=${spec.default}`.padEnd(32)} ${spec.about}`;
}
