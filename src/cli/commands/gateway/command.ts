import { Command, Option } from "commander";
import type { Terminal } from "../../terminal.ts";
import { ALIAS_FLAGS } from "./dynamo-aliases.ts";
import { type GivenSettings, flagName, settingKeys } from "./settings.ts";
import { Supervisor } from "./supervisor.ts";
import { untilStopped } from "./stop-signal.ts";
import { readWritten } from "./written-settings.ts";

/** `warmpath gateway`: the router in front of real or simulated engines. */
export function gatewayCommand(terminal: Terminal): Command {
  const command = new Command("gateway").description(
    "Serve the OpenAI API in front of several engines, each request where it is answered soonest.",
  );
  for (const { key, about, kind, default: value } of settingKeys()) {
    const name = flagName(key);
    const isOn = value === "true";
    if (kind === "list") command.option(`--${name} <value>`, about, collect);
    else if (kind === "flag") command.option(isOn ? `--no-${name}` : `--${name}`, isOn ? `do not ${about}` : about);
    else command.option(`--${name} <value>`, value === "" ? about : `${about} (default ${value})`);
  }
  command.option("--config <file>", "settings by name in YAML or JSON; flags and environment go before it");
  for (const [flags, about] of ALIAS_FLAGS) command.addOption(new Option(flags, about));
  return command
    .option("--json", "print the addresses as JSON")
    .helpOption("-h, --help", "print this help")
    .addHelpText(
      "after",
      [
        "",
        "Every setting can also be given as WARMPATH_NAME, for example WARMPATH_BLOCK_TOKENS=64.",
        "",
        "Examples:",
        "  $ warmpath gateway --worker http://127.0.0.1:8001 --worker http://127.0.0.1:8002",
        "  $ warmpath gateway --worker a=http://gpu1:8000,events=tcp://gpu1:5557,replay=tcp://gpu1:5558 --tokenizer ./model --policy kv-cost",
        "  $ DYN_ROUTER_MODE=round_robin warmpath gateway --config gateway.yaml",
      ].join("\n"),
    )
    .action((_options: unknown, self: Command) => run(self, terminal));
}

async function run(command: Command, terminal: Terminal): Promise<void> {
  const { config, json, ...flags } = givenFlags(command);
  const sources = { flags, file: config as string | undefined };
  const log = (line: string): void => terminal.printError(line);
  const { settings, notes } = await readWritten({ ...sources, environment: process.env });
  for (const note of notes) log(note);
  const starting = Supervisor.start({ settings, sources, log });
  process.on("SIGHUP", () => void starting.then((supervisor) => supervisor.reload()));
  process.on("SIGUSR2", () => void starting.then((supervisor) => supervisor.restart()));
  const supervisor = await starting;
  // Before the addresses are told: whoever waits for them may ask for the end at once.
  const stopped = untilStopped();
  announce(supervisor, json === true, terminal);
  await stopped;
  log(`stopping: requests under way have ${supervisor.settings.drainSeconds} s`);
  await supervisor.close();
}

function announce(supervisor: Supervisor, isJson: boolean, terminal: Terminal): void {
  const { url, adminUrl, deciderPid, proxyPids, settings } = supervisor;
  const { policy, processes, set } = settings;
  if (isJson) {
    terminal.print(JSON.stringify({ url, adminUrl, policy, processes, pid: process.pid, deciderPid, proxyPids }));
    return;
  }
  terminal.print(`gateway  ${url}/v1`);
  terminal.print(`admin    ${adminUrl}/admin/workers`);
  terminal.print(`policy   ${[policy, ...set].join("  ")}`);
}

/** Only what was written: a default must not hide what the environment or a file says. */
function givenFlags(command: Command): GivenSettings {
  const values: Record<string, unknown> = command.opts();
  return Object.fromEntries(Object.entries(values).filter(([key]) => command.getOptionValueSource(key) === "cli"));
}

function collect(value: string, before: string[] | undefined): string[] {
  return [...(before ?? []), value];
}
