import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import { Command } from "commander";
import { WarmpathError } from "../../../core/errors.ts";
import { createPolicy, POLICIES } from "../../../core/policy/registry.ts";
import type { ParameterSpec, PolicyParameters } from "../../../core/policy/types.ts";
import type { Terminal } from "../../terminal.ts";
import { EXAMPLE_DECISION } from "./example.ts";
import { type DecisionInput, inputFieldLines, parseDecisionInput } from "./input.ts";
import { explainDecision } from "./record.ts";
import { explanationLines } from "./render.ts";

const DEFAULT_POLICY = "kv-cost";
const WHAT_NEXT =
  "Try: npx warmpath explain --example --policy round-robin, or your own numbers: npx warmpath explain --help";

interface ExplainOptions {
  readonly example?: boolean;
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
    .option("--policy <name>", "decide by this policy instead of the file's")
    .option("--set <name=value>", "set a knob of the policy; may be repeated", collectSetting)
    .option("--json", "print the record as JSON")
    .helpOption("-h, --help", "print this help")
    .addHelpText("after", helpText)
    .action(async (file: string | undefined, options: ExplainOptions) => {
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

async function readInput(file: string | undefined, example: boolean, terminal: Terminal): Promise<DecisionInput> {
  if (example && file !== undefined) throw usage(`give either --example or a file, not both (got ${file})`);
  if (example) return parseDecisionInput(EXAMPLE_DECISION, "the built-in example");
  if (file === undefined) throw usage("give a JSON file, - for stdin, or --example");
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
  ].join("\n");
}

function knobLine(name: string, spec: ParameterSpec): string {
  return `    ${`${name}=${spec.default}`.padEnd(32)} ${spec.about}`;
}
