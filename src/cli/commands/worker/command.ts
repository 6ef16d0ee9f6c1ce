import { Command, Option } from "commander";
import { memoryPlanLines } from "../../../sim/memory-plan.ts";
import type { FaultChanges } from "../../../worker/faults.ts";
import type { Terminal } from "../../terminal.ts";
import { type RunningWorker, startWorker } from "./compose.ts";
import { engineArgumentsFile, engineArgumentsText } from "./engine-arguments.ts";
import { readFault } from "./fault-option.ts";
import { readKvEventsConfig, type ZmqEventsConfig } from "./kv-events-option.ts";
import { readSettings, settingKeys, type WorkerSettings } from "./settings.ts";
import { memoryOf, simulatedEngine } from "./simulated-engine.ts";
import { stopRequested } from "./stop-signals.ts";

/** What a crash on purpose ends with, so that nobody takes it for another one. */
const EXIT_CRASHED = 70;

/** Names that vLLM and SGLang give to flags of ours. */
const ALIASES: readonly (readonly [alias: string, setting: keyof WorkerSettings])[] = [
  ["--model", "modelPath"],
  ["--max-num-seqs", "maxBatchSize"],
  ["--max-num-batched-tokens", "maxNumTokens"],
  ["--max-model-len", "maxSeqLen"],
  ["--block-size", "kvBlockSize"],
  ["--page-size", "kvBlockSize"],
  ["--gpu-memory-utilization", "freeGpuMemoryFraction"],
  ["--mem-fraction-static", "freeGpuMemoryFraction"],
];

/** Options that are no settings of the worker. */
interface OtherOptions {
  readonly extraEngineArgs?: string;
  readonly overrideEngineArgs?: string;
  readonly kvEventsConfig?: ZmqEventsConfig;
  readonly fault?: FaultChanges;
  readonly plan?: boolean;
  readonly json?: boolean;
}

const OTHERS: readonly string[] = [
  "extraEngineArgs",
  "overrideEngineArgs",
  "kvEventsConfig",
  "fault",
  "plan",
  "json",
] satisfies (keyof OtherOptions)[];

/** `warmpath worker`: one simulated engine as a process. */
export function workerCommand(terminal: Terminal): Command {
  const command = new Command("worker").description("Serve one simulated engine behind the OpenAI API, in real time.");
  for (const { flag, about, isSwitch, default: value } of settingKeys()) {
    const shown =
      value === undefined ? "" : ` (default ${value === true ? "on" : value === false ? "off" : String(value)})`;
    command.option(isSwitch ? flag : `${flag} <value>`, about + shown);
    if (isSwitch && value !== false) command.option(flag.replace("--", "--no-"), "turn that off");
  }
  for (const [alias] of ALIASES) command.addOption(new Option(`${alias} <value>`).hideHelp());
  command
    .option("--extra-engine-args <file>", "some of these in TensorRT-LLM's own YAML; flags count before it")
    .option("--override-engine-args <json>", "the same as JSON, counting before the file")
    .addOption(new Option("--kv-events-config <json>", "vLLM's: also publish over ZMQ").argParser(readKvEventsConfig))
    .addOption(
      new Option(
        "--fault <name[=value]>",
        "crash, hang, slow, refuse, cut-stream, drop-events; may be repeated",
      ).argParser(readFault),
    )
    .option("--plan", "print the memory plan and serve nothing")
    .option("--json", "print as JSON")
    .helpOption("-h, --help", "print this help")
    .addHelpText(
      "after",
      [
        "",
        "Examples:",
        "  $ warmpath worker --model-path Llama-3.1-70B-Instruct-FP8 --tensor-parallel-size 1 --max-num-tokens 16384 \\",
        "      --max-batch-size 64 --kv-cache-dtype fp8 --publish-events-and-metrics",
        "  $ warmpath worker --engine trtllm --model-path llama-3.1-70b --gpu h100 --tensor-parallel-size 2 --plan",
        "  $ warmpath worker --port 8002 --speed 10 --register http://127.0.0.1:8900 --fault slow=3",
      ].join("\n"),
    );
  return command.action((options: OtherOptions) => serve(command, options, terminal));
}

async function serve(command: Command, options: OtherOptions, terminal: Terminal): Promise<void> {
  const settings = settingsOf(command, options);
  if (options.plan === true) {
    printPlan(settings, options, terminal);
    return;
  }
  const worker = await startWorker({
    settings,
    ...(options.fault !== undefined && { faults: options.fault }),
    zmq: options.kvEventsConfig,
    crash: () => process.exit(EXIT_CRASHED),
    problem: (message) => terminal.printError(`warmpath worker: ${message}`),
  });
  for (const line of startLines(worker, settings, options)) terminal.print(line);
  await stopRequested();
  // Listened for before anything is said: whoever reads it may ask again at once.
  void stopRequested().then(() => worker.abandon());
  terminal.printError(`${worker.name} takes no more requests and finishes those it has`);
  await worker.close(settings.drainSeconds);
}

/** What is written on the command line counts before what the engine's own configuration says. */
function settingsOf(command: Command, options: OtherOptions): WorkerSettings {
  const { extraEngineArgs, overrideEngineArgs } = options;
  const isWritten = (name: string): boolean => command.getOptionValueSource(name) === "cli" && !OTHERS.includes(name);
  const written = Object.entries(options).filter(([name]) => isWritten(name));
  const flags: Record<string, unknown> = {
    ...(extraEngineArgs !== undefined && engineArgumentsFile(extraEngineArgs)),
    ...(overrideEngineArgs !== undefined && engineArgumentsText(overrideEngineArgs)),
    ...Object.fromEntries(written),
  };
  for (const [alias, setting] of ALIASES) {
    const name = new Option(`${alias} <value>`).attributeName();
    if (flags[name] !== undefined) flags[setting] = flags[name];
    delete flags[name];
  }
  return readSettings(flags);
}

function printPlan(settings: WorkerSettings, options: OtherOptions, terminal: Terminal): void {
  const plan = memoryOf(settings);
  if (options.json === true) terminal.print(JSON.stringify(plan, null, 2));
  else for (const line of memoryPlanLines(plan)) terminal.print(line);
  // The plan is shown in any case; that it cannot run is the exit code's and the last line's to say.
  simulatedEngine(settings);
}

function startLines(
  { name, model, url, description }: RunningWorker,
  settings: WorkerSettings,
  options: OtherOptions,
): string[] {
  const { plan, engine } = description;
  const { blockTokens, poolBlocks, maxSequences, maxTokensPerStep } = engine.limits;
  if (options.json === true) {
    const limits = { blockTokens, poolBlocks, maxSequences, maxTokensPerStep };
    return [JSON.stringify({ name, model, url, engine: settings.engine, ...limits, poolTokens: plan.poolTokens })];
  }
  const cards = `${settings.tensorParallelSize} x ${settings.gpu}`;
  return [
    `${name} serves ${model} at ${url} (simulated: ${settings.engine} on ${cards})`,
    `KV pool of ${plan.poolTokens} tokens in ${poolBlocks} blocks of ${blockTokens}; ${maxSequences} requests and ${maxTokensPerStep} tokens in a step`,
  ];
}
