import { Command } from "commander";
import { WarmpathError } from "../../../core/errors.ts";
import type { Range } from "../../../workload/draw.ts";

/** An error that ends the program with one line and exit code 2. */
export function usage(message: string, cause?: unknown): WarmpathError {
  return new WarmpathError("WP_INVALID_INPUT", message, { cause });
}

/** Rows that a trace may be made of; all of them are in memory. */
export const MOST_ROWS = 10_000_000;
/** A number beyond these, or closer to 0, is no time any more once it has been multiplied with one. */
const MOST_FACTOR = 1e6;
const LEAST_FACTOR = 1e-6;

/** Reads an option as a whole number. */
export function wholeNumber(option: string, least: number, most: number = Infinity): (written: string) => number {
  const bounds = most === Infinity ? `${least} or more` : `${least} to ${most}`;
  return (written) => {
    const value = Number(written);
    if (written.trim() !== "" && Number.isSafeInteger(value) && value >= least && value <= most) return value;
    throw usage(`${option} must be a whole number, ${bounds}, got "${written}"`);
  };
}

/** Reads an option as a number above 0, within what times can be multiplied with. */
export function positiveNumber(option: string): (written: string) => number {
  return (written) => {
    const value = Number(written);
    if (written.trim() !== "" && value >= LEAST_FACTOR && value <= MOST_FACTOR) return value;
    throw usage(`${option} must be a number, ${LEAST_FACTOR} to ${MOST_FACTOR}, got "${written}"`);
  };
}

/** Reads an option as a number, 0 or more. */
export function nonNegativeNumber(option: string): (written: string) => number {
  return (written) => {
    const value = Number(written);
    if (written.trim() !== "" && value >= 0 && value < Infinity) return value;
    throw usage(`${option} must be a number, 0 or more, got "${written}"`);
  };
}

/** Reads an option as a range of whole numbers, `100-200`, or one number for both ends. */
export function wholeRange(option: string): (written: string) => Range {
  return (written) => {
    const [, least, most = least] = /^(\d+)(?:-(\d+))?$/.exec(written.trim()) ?? [];
    const range: Range = [Number(least), Number(most)];
    if (least !== undefined && range[1] >= range[0] && Number.isSafeInteger(range[1])) return range;
    throw usage(`${option} must be a whole number or a range such as 100-200, got "${written}"`);
  };
}

/** A sub-command with what all of them have: `--json`, and help with an example. */
export function subCommand(name: string, about: string, examples: readonly string[]): Command {
  const lines = examples.map((example) => `  $ warmpath trace ${example}`);
  return new Command(name)
    .description(about)
    .option("--json", "print the result as JSON")
    .helpOption("-h, --help", "print this help")
    .addHelpText("after", ["", examples.length === 1 ? "Example:" : "Examples:", ...lines].join("\n"));
}
