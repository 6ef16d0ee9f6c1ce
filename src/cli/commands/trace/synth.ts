import type { Command } from "commander";
import { Option } from "commander";
import { Rng } from "../../../core/rng.ts";
import { MOONCAKE_BLOCK_TOKENS } from "../../../wire/mooncake-trace.ts";
import { ArrivalSupply } from "../../../workload/arrival-supply.ts";
import type { ArrivalProcess } from "../../../workload/arrivals.ts";
import { Conversations } from "../../../workload/conversation/conversations.ts";
import { CONVERSATION_PRESETS, conversationPreset } from "../../../workload/conversation/presets.ts";
import { turnProfile } from "../../../workload/conversation/turn-profile.ts";
import type { Range } from "../../../workload/draw.ts";
import { PrefixGroups, type PrefixGroupParameters } from "../../../workload/prefix-groups.ts";
import type { SessionSupply } from "../../../workload/request.ts";
import { rowsOfSessions } from "../../../workload/trace/synthesis.ts";
import type { Terminal } from "../../terminal.ts";
import { MOST_ROWS, nonNegativeNumber, positiveNumber, subCommand, usage, wholeNumber, wholeRange } from "./options.ts";
import { profileLines, publishedProfile } from "./profile.ts";
import { type Setting, readSetting, withSettings } from "./settings.ts";
import { printSummary, writeTrace } from "./trace-file.ts";

interface SynthOptions {
  readonly preset?: string;
  readonly set?: readonly Setting[];
  readonly groups?: number;
  readonly prefix?: Range;
  readonly skew?: number;
  readonly suffix?: Range;
  readonly output?: Range;
  readonly sessions: number;
  readonly rate: number;
  readonly arrivals: ArrivalProcess["kind"];
  readonly shape: number;
  readonly burstSize: number;
  readonly seed: number;
  readonly traceBlock: number;
  readonly out?: string;
  readonly json?: boolean;
}

/** A workload that can be written, and its parameters for the record. */
interface Synthesised {
  readonly kind: "conversations" | "prefix-groups";
  readonly preset: string | null;
  readonly parameters: object;
  readonly supply: SessionSupply;
}

/** `warmpath trace synth`: writes a synthetic workload as a trace. */
export function synthCommand(terminal: Terminal): Command {
  const command = subCommand(
    "synth",
    "Write a synthetic workload as a trace: a preset, or groups of common prefixes.",
    [
      "synth --preset multi-turn --sessions 500 --rate 2 --out conversations.jsonl",
      "synth --preset rag --set turns=1-3 --set starterSkew=0.5 --seed 7",
      "synth --groups 50 --prefix 2000 --skew 1 --suffix 100-400 --output 50-200 --arrivals gamma --shape 0.3",
    ],
  );
  command
    .option("--preset <name>", "conversations of a kind, see below (default: multi-turn unless --groups is given)")
    .option("--set <name=value>", "change a parameter of the preset; may be repeated", collectSetting)
    .option("--groups <number>", "single requests in so many prefix groups instead", wholeNumber("--groups", 1))
    .option("--prefix <tokens>", "common prefix of a group; a range such as 500-2000", wholeRange("--prefix"))
    .option("--skew <exponent>", "Zipf exponent of the groups' popularity", nonNegativeNumber("--skew"))
    .option("--suffix <tokens>", "own tokens of a request", wholeRange("--suffix"))
    .option("--output <tokens>", "output tokens of a request", wholeRange("--output"))
    .option(
      "--sessions <number>",
      "conversations, or requests of groups",
      wholeNumber("--sessions", 1, MOST_ROWS),
      1000,
    )
    .option("--rate <per second>", "sessions that begin per second", positiveNumber("--rate"), 1)
    .addOption(
      new Option("--arrivals <kind>", "how they arrive")
        .choices(["poisson", "constant", "gamma", "burst"])
        .default("poisson"),
    )
    .option("--shape <number>", "shape of gamma arrivals; below 1 is burstier", positiveNumber("--shape"), 0.5)
    .option("--burst-size <number>", "sessions of a burst", wholeNumber("--burst-size", 1), 10)
    .option("--seed <number>", "the same seed gives the same trace", wholeNumber("--seed", 0), 1)
    .option(
      "--trace-block <tokens>",
      "tokens that a hash id stands for",
      wholeNumber("--trace-block", 1),
      MOONCAKE_BLOCK_TOKENS,
    )
    .option("--out <file>", "write the trace there (default: stdout)")
    .addHelpText("after", presetHelp)
    .action((options: SynthOptions) => synthesise(options, terminal));
  return command;
}

async function synthesise(options: SynthOptions, terminal: Terminal): Promise<void> {
  const { out, seed, sessions, traceBlock } = options;
  const rng = new Rng(seed);
  const { kind, preset, parameters, supply } = chooseSupply(options, rng);
  const arrivals = arrivalProcess(options);
  const rows = rowsOfSessions(new ArrivalSupply(supply, arrivals, rng), sessions, traceBlock);
  const sha256 = await writeTrace(rows, out, undefined, terminal);
  const profile = turnProfile(supply, sessions);
  const published = preset === "multi-turn" ? publishedProfile() : null;
  if (options.json === true) {
    const workload = { kind, preset, parameters, arrivals, seed, sessions };
    const record = { out: out ?? null, rows: rows.length, sha256, workload, profile, published };
    printSummary([JSON.stringify(record, null, 2)], out, terminal);
    return;
  }
  const title = `${preset ?? "prefix groups"}, seed ${seed}: ${sessions} sessions, ${rows.length} rows, sha256 ${sha256}`;
  printSummary([title, "", ...profileLines(profile, published, terminal.colours)], out, terminal);
}

function chooseSupply(options: SynthOptions, rng: Rng): Synthesised {
  const { groups, prefix, skew, suffix, output } = options;
  if (groups === undefined) {
    const stray = Object.entries({ prefix, skew, suffix, output }).find(([, value]) => value !== undefined);
    if (stray !== undefined) throw usage(`--${stray[0]} needs --groups`);
    const { name, parameters } = conversationPreset(options.preset ?? "multi-turn");
    const changed = withSettings(parameters, options.set ?? []);
    return {
      kind: "conversations",
      preset: name,
      parameters: changed,
      supply: new Conversations(changed, rng, options.sessions),
    };
  }
  if (options.preset !== undefined) throw usage("give either --preset or --groups, not both");
  if (options.set !== undefined) throw usage("--set is for presets; groups have options of their own");
  const parameters: PrefixGroupParameters = {
    groups,
    prefixTokens: prefix ?? [2000, 2000],
    skew: skew ?? 0,
    suffixTokens: suffix ?? [100, 100],
    outputTokens: output ?? [100, 100],
  };
  const supply = new PrefixGroups(parameters, rng, options.sessions);
  return { kind: "prefix-groups", preset: null, parameters, supply };
}

function arrivalProcess({ arrivals, rate, shape, burstSize }: SynthOptions): ArrivalProcess {
  if (arrivals === "gamma") return { kind: arrivals, rateRps: rate, shape };
  if (arrivals === "burst") return { kind: arrivals, rateRps: rate, burstSize };
  return { kind: arrivals, rateRps: rate };
}

function collectSetting(written: string, earlier: readonly Setting[] = []): readonly Setting[] {
  return [...earlier, readSetting(written)];
}

function presetHelp(): string {
  const parameters = Object.entries(CONVERSATION_PRESETS[0].parameters);
  return [
    "",
    "Presets:",
    ...CONVERSATION_PRESETS.map(({ name, about }) => `  ${name.padEnd(20)} ${about}`),
    "",
    "Parameters for --set, with the values of multi-turn (a range is 3-5, a list 555,818):",
    ...parameters.map(([name, value]) => `  ${name.padEnd(20)} ${displayValue(value)}`),
  ].join("\n");
}

function displayValue(value: number | readonly number[]): string {
  if (typeof value === "number") return String(value);
  return value.join(value.length === 2 ? "-" : ",");
}
