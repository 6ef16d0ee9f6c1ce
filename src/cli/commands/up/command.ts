import { Command } from "commander";
import type { Terminal } from "../../terminal.ts";
import { untilStopped } from "../gateway/stop-signal.ts";
import { readExperimentFile } from "../run/experiment-file.ts";
import { type RunningDemo, startDemo } from "./compose.ts";
import { readUpSettings, type UpSettings, upSettingKeys } from "./settings.ts";

/** `warmpath up`: simulated workers, a gateway, load and the live page, all on this machine. */
export function upCommand(terminal: Terminal): Command {
  const command = new Command("up").description(
    "Start the demo: a simulated fleet in real time, the gateway, conversations, and the live page to steer them.",
  );
  for (const { flag, about, kind, default: value } of upSettingKeys()) {
    if (kind === "switch") command.option(flag, about);
    else if (kind === "list") command.option(`${flag} <value>`, about, collect);
    else command.option(`${flag} <value>`, value === "" ? about : `${about} (default ${value})`);
  }
  return command
    .option("--json", "print the addresses as JSON")
    .helpOption("-h, --help", "print this help")
    .addHelpText(
      "after",
      [
        "",
        "Examples:",
        "  $ warmpath up",
        "  $ warmpath up --preset h100-tp2-sweep --policy kv-cost --concurrency 40",
        "  $ warmpath up --baselines results/mine/results.json --port 9000",
      ].join("\n"),
    )
    .action(async ({ json, ...flags }: Record<string, unknown>) => {
      const settings = readUpSettings(flags);
      const { experiment } = await readExperimentFile(settings.preset, terminal);
      const startedMs = performance.now();
      const stopped = untilStopped();
      const demo = await startDemo(settings, experiment, (line) => terminal.printError(line));
      announce(demo, settings, json === true, performance.now() - startedMs, terminal);
      await stopped;
      terminal.printError("stopping …");
      await demo.close();
      terminal.printError("everything has stopped");
    });
}

function announce(
  demo: RunningDemo,
  settings: UpSettings,
  isJson: boolean,
  elapsedMs: number,
  terminal: Terminal,
): void {
  const { pageUrl, gatewayUrl, adminUrl, pids } = demo;
  if (isJson) {
    terminal.print(JSON.stringify({ pageUrl, gatewayUrl, adminUrl, pids, pid: process.pid }));
    return;
  }
  const moved = (what: string, url: string, wanted: number): string => {
    const port = Number(new URL(url).port);
    return port === wanted ? "" : terminal.colours.yellow(`  (${what} ${wanted} is taken)`);
  };
  const { bold, dim } = terminal.colours;
  terminal.print(`page     ${bold(pageUrl)}${moved("port", pageUrl, settings.port)}`);
  terminal.print(`gateway  ${gatewayUrl}/v1${moved("port", gatewayUrl, settings.gatewayPort)}`);
  terminal.print(`admin    ${adminUrl}/admin/workers${moved("port", adminUrl, settings.adminPort)}`);
  const load = settings.stopped ? "stopped" : `${settings.concurrency} conversations`;
  terminal.print(`fleet    ${demo.workers} simulated workers, policy ${settings.policy}, ${load}`);
  terminal.print(dim(`started in ${(elapsedMs / 1000).toFixed(1)} s; Ctrl-C stops everything`));
}

function collect(value: string, before: string[] | undefined): string[] {
  return [...(before ?? []), value];
}
