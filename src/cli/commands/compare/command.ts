import { Command } from "commander";
import { WarmpathError } from "../../../core/errors.ts";
import { buildModel } from "../../../lab/report/model.ts";
import type { Slo } from "../../../measure/slo.ts";
import type { Terminal } from "../../terminal.ts";
import { collectInput } from "../report/collect-input.ts";
import { readSlo } from "../report/options.ts";
import { comparisonJson, comparisonLines } from "./render.ts";
import { compareFolders, exitCodeOf } from "./verdicts.ts";

interface CompareOptions {
  readonly slo?: Slo;
  readonly expect?: "better";
  readonly json?: boolean;
}

/** `warmpath compare`: two folders side by side, with an exit code that a pipeline can act on. */
export function compareCommand(terminal: Terminal): Command {
  return new Command("compare")
    .description("Compare two results folders, our own or AIPerf's; the exit code says how it came out.")
    .argument("<before>", "the folder that is the baseline")
    .argument("<after>", "the folder that is held against it")
    .option("--slo <limits>", "limits in ms, such as ttft=600,tpot=60, in place of the run's own", readSlo)
    .option("--expect <verdict>", "better: no difference shown is not enough", readExpectation)
    .option("--json", "print the comparison as JSON")
    .helpOption("-h, --help", "print this help")
    .addHelpText(
      "after",
      [
        "",
        "Exit codes: 0 better, or no difference shown; 3 worse; 4 better in some respects and worse in others;",
        "5 not comparable, completeness traded for latency and arms or levels that only the baseline has included;",
        "6 no difference shown where --expect better; 2 a folder that cannot be read.",
        "",
        "Examples:",
        "  $ warmpath compare results/before results/after",
        "  $ warmpath compare aiperf/off aiperf/on --json",
      ].join("\n"),
    )
    .action((before: string, after: string, options: CompareOptions) => compare(before, after, options, terminal));
}

async function compare(before: string, after: string, options: CompareOptions, terminal: Terminal): Promise<void> {
  const input = await collectInput([before, after], { mode: "compare", slo: options.slo });
  const isRead = [before, after].every((_, argument) => input.arguments.includes(argument));
  if (input.cells.length === 0 || !isRead) {
    throw new WarmpathError("WP_INVALID_INPUT", input.problems.join("; ") || "there is nothing to compare");
  }
  const model = buildModel(input);
  const compared = compareFolders(model, input);
  for (const problem of model.problems) if (options.json !== true) terminal.printError(problem);
  if (options.json === true) terminal.print(JSON.stringify(comparisonJson(model, compared), null, 2));
  else for (const line of comparisonLines(compared, terminal.colours)) terminal.print(line);
  terminal.exitCode = exitCodeOf(compared.verdict, options.expect);
}

function readExpectation(written: string): "better" {
  if (written === "better") return written;
  throw new WarmpathError("WP_INVALID_INPUT", `--expect must be better, got "${written}"`);
}
