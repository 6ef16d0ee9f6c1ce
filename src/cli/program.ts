import { Command, CommanderError } from "commander";
import { WarmpathError } from "../core/errors.ts";
import { calibrateCommand } from "./commands/calibrate/command.ts";
import { doctorCommand } from "./commands/doctor/command.ts";
import { compareCommand } from "./commands/compare/command.ts";
import { explainCommand } from "./commands/explain/command.ts";
import { gatewayCommand } from "./commands/gateway/command.ts";
import { keyCommand } from "./commands/key/command.ts";
import { loadCommand } from "./commands/load/command.ts";
import { reportCommand } from "./commands/report/command.ts";
import { runCommand } from "./commands/run/command.ts";
import { traceCommand } from "./commands/trace/command.ts";
import { upCommand } from "./commands/up/command.ts";
import { workerCommand } from "./commands/worker/command.ts";
import { NegativeVerdict } from "./negative-verdict.ts";
import { packageVersion } from "./package-version.ts";
import type { Terminal } from "./terminal.ts";

/** Every command of `warmpath`; a new one is a line here. */
const COMMANDS: readonly ((terminal: Terminal) => Command)[] = [
  upCommand,
  gatewayCommand,
  keyCommand,
  loadCommand,
  runCommand,
  reportCommand,
  compareCommand,
  explainCommand,
  doctorCommand,
  calibrateCommand,
  traceCommand,
  workerCommand,
];

const EXIT_OK = 0;
const EXIT_INTERNAL = 1;
const EXIT_NO = 1;
const EXIT_USAGE = 2;

/** All commands, to be run on a terminal. */
export function createCommands(terminal: Terminal): readonly Command[] {
  return COMMANDS.map((create) => create(terminal));
}

/** Runs one command line and returns the exit code; nothing is thrown past it and nothing prints a stack unasked. */
export async function runCli(words: readonly string[], terminal: Terminal): Promise<number> {
  const commands = createCommands(terminal);
  const program = createProgram(commands);
  for (const command of [program, ...commands.flatMap((one) => [one, ...one.commands])]) tame(command, terminal);
  const label = commandPath(commands, words);
  try {
    if (words.length === 0) {
      const names = commands.map((command) => command.name()).join(", ");
      throw new WarmpathError("WP_INVALID_INPUT", `name a command: ${names} (see warmpath --help)`);
    }
    await program.parseAsync(words, { from: "user" });
    return terminal.exitCode ?? EXIT_OK;
  } catch (error) {
    return report(error, label, terminal);
  }
}

function createProgram(commands: readonly Command[]): Command {
  const program = new Command("warmpath")
    .description("A KV-cache-aware router for LLM inference, its simulated twin, and the lab that measures both.")
    .version(packageVersion(), "-V, --version", "print the version")
    .helpOption("-h, --help", "print this help")
    .helpCommand("help [command]", "print the help of a command")
    .addHelpText("after", "\nExample:\n  $ warmpath up");
  for (const command of commands) program.addCommand(command);
  return program;
}

/** The command that the words name, as far as they name one: what a complaint begins with. */
function commandPath(commands: readonly Command[], words: readonly string[]): string {
  const command = commands.find((one) => one.name() === words[0]);
  const nested = command?.commands.find((one) => one.name() === words[1]);
  return ["warmpath", ...[command, nested].flatMap((one) => one?.name() ?? [])].join(" ");
}

/** Has commander hand its complaints to `report` instead of printing them and ending the process. */
function tame(command: Command, terminal: Terminal): void {
  command.exitOverride().configureOutput({
    writeOut: (help) => terminal.print(help.trimEnd()),
    writeErr: () => {},
  });
}

function report(error: unknown, label: string, terminal: Terminal): number {
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return EXIT_OK;
    const complaint = oneLine(error.message.replace(/^error: /, "")).replace(/\.$/, "");
    terminal.printError(`${label}: ${complaint} (see ${label} --help)`);
    return EXIT_USAGE;
  }
  if (error instanceof NegativeVerdict) return EXIT_NO;
  const message = oneLine(error instanceof Error ? error.message : String(error));
  if (terminal.debug && error instanceof Error && error.stack !== undefined) terminal.printError(error.stack);
  if (WarmpathError.isInstance(error) && isAboutInput(error)) {
    terminal.printError(`${label}: ${message}`);
    return EXIT_USAGE;
  }
  const code = WarmpathError.isInstance(error) ? error.code : "unexpected";
  terminal.printError(`${label}: internal error [${code}] ${message} (WARMPATH_DEBUG=1 shows where)`);
  return EXIT_INTERNAL;
}

function isAboutInput(error: WarmpathError): boolean {
  return error.code === "WP_INVALID_INPUT" || error.code === "WP_UNKNOWN_POLICY";
}

function oneLine(message: string): string {
  return message.replaceAll(/\s*\n\s*/g, " ").trim();
}
