import { Command } from "commander";
import type { Terminal } from "../../terminal.ts";
import { fetchCommand } from "./fetch.ts";
import { inspectCommand } from "./inspect.ts";
import { usage } from "./options.ts";
import { synthCommand } from "./synth.ts";
import { filterCommand, jitterCommand, scaleCommand, sliceCommand, tileCommand } from "./transform.ts";

/** What can be done with a trace; a new one is a line here. */
const SUB_COMMANDS: readonly ((terminal: Terminal) => Command)[] = [
  inspectCommand,
  filterCommand,
  sliceCommand,
  scaleCommand,
  jitterCommand,
  tileCommand,
  synthCommand,
  fetchCommand,
];

/** `warmpath trace`: inspects, changes, synthesises and downloads traces. */
export function traceCommand(terminal: Terminal): Command {
  const command = new Command("trace")
    .description("Inspect, filter, slice, scale, synthesise and download request traces.")
    .helpOption("-h, --help", "print this help")
    .helpCommand(false)
    .addHelpText(
      "after",
      "\nExamples:\n  $ warmpath trace fetch conversation\n  $ warmpath trace inspect data/traces/conversation_trace.jsonl",
    );
  for (const create of SUB_COMMANDS) command.addCommand(create(terminal));
  const names = command.commands.map((one) => one.name()).join(", ");
  return command
    .argument("[action]")
    .usage("ACTION [options]")
    .action((action: string | undefined) => {
      const complaint = action === undefined ? "name an action" : `unknown action "${action}"`;
      throw usage(`${complaint}: ${names} (see warmpath trace --help)`);
    });
}
