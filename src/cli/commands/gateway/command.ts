import { Command, Option } from "commander";
import type { Terminal } from "../../terminal.ts";
import { ALIAS_FLAGS } from "./dynamo-aliases.ts";
import { serveGateway } from "./serve-gateway.ts";
import { resolveSettings } from "./setting-sources.ts";
import { type GatewaySettings, settingKeys } from "./settings.ts";
import { settled } from "./settled-settings.ts";
import { startProcesses } from "./supervisor.ts";
import { untilStopped } from "./stop-signal.ts";

/** `warmpath gateway`: the router in front of real or simulated engines. */
export function gatewayCommand(terminal: Terminal): Command {
  const command = new Command("gateway").description(
    "Serve the OpenAI API in front of several engines, each request where it is answered soonest.",
  );
  for (const { key, about, kind, default: value } of settingKeys()) {
    const name = kebab(key);
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
  const written = await resolveSettings({
    flags,
    environment: process.env,
    file: config as string | undefined,
  });
  const { settings, notes } = await settled(written.settings);
  for (const note of [...written.notes, ...notes]) terminal.printError(note);
  await serve(settings, json === true, terminal);
}

async function serve(settings: GatewaySettings, isJson: boolean, terminal: Terminal): Promise<void> {
  const log = (line: string): void => terminal.printError(line);
  const running = await (settings.processes === 1 ? serveGateway(settings, log) : startProcesses(settings, log));
  announce({ ...running, settings }, isJson, terminal);
  await untilStopped();
  log(`stopping: requests under way have ${settings.drainSeconds} s`);
  await running.close();
}

function announce(
  running: {
    url: string;
    adminUrl: string;
    settings: GatewaySettings;
    deciderPid?: number;
    proxyPids?: readonly number[];
  },
  isJson: boolean,
  terminal: Terminal,
): void {
  const { url, adminUrl, settings } = running;
  if (isJson) {
    const { policy, processes } = settings;
    const { deciderPid, proxyPids } = running;
    terminal.print(JSON.stringify({ url, adminUrl, policy, processes, pid: process.pid, deciderPid, proxyPids }));
    return;
  }
  terminal.print(`gateway  ${url}/v1`);
  terminal.print(`admin    ${adminUrl}/admin/workers`);
  terminal.print(`policy   ${[settings.policy, ...settings.set].join("  ")}`);
}

/** Only what was written: a default must not hide what the environment or a file says. */
function givenFlags(command: Command): Record<string, unknown> {
  const values: Record<string, unknown> = command.opts();
  return Object.fromEntries(Object.entries(values).filter(([key]) => command.getOptionValueSource(key) === "cli"));
}

function collect(value: string, before: string[] | undefined): string[] {
  return [...(before ?? []), value];
}

function kebab(key: string): string {
  return key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
