import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import { Command, Option } from "commander";
import { WarmpathError } from "../../../core/errors.ts";
import { errorGroups } from "../../../sim/calibration/error-summary.ts";
import { predictRow } from "../../../sim/calibration/prediction.ts";
import { parseSiliconRows, type SiliconRow } from "../../../sim/calibration/silicon-row.ts";
import { fitCell, FIT_BOUNDS, isInSubset, type RowSubset } from "../../../sim/calibration/silicon-fit.ts";
import { fitSteps } from "../../../sim/calibration/step-fit.ts";
import { isStepFile, parseStepRows } from "../../../sim/calibration/step-row.ts";
import { CONSTANTS, type ConstantsCell } from "../../../sim/timing/constants.ts";
import type { Terminal } from "../../terminal.ts";
import { calibrationJson, calibrationLines, calibrationMarkdown, type Calibration, type FittedCell } from "./render.ts";
import { stepFitJson, stepFitLines, stepFitMarkdown } from "./render-steps.ts";

interface CalibrateOptions {
  readonly rows: string;
  readonly fit?: boolean;
  readonly subset: RowSubset;
  readonly gpu: string;
  readonly json?: boolean;
  readonly markdown?: boolean;
}

/** `warmpath calibrate`: predicts measured rows and prints the error of each; can fit constants to them. */
export function calibrateCommand(terminal: Terminal): Command {
  return new Command("calibrate")
    .description("Predict every row of a measurements file and print the error per row and group.")
    .requiredOption("--rows <file>", "CSV of serving measurements, or of steps measured by calibration/h200_run.py")
    .option("--fit", "fit the constants inside physical bounds on a subset, and print them and their errors")
    .addOption(
      new Option("--subset <name>", "the rows to fit on: half of the ids by hash, the other half, or all")
        .choices(["calibration", "held-out", "all"])
        .default("calibration"),
    )
    .option("--gpu <name>", "the card of a file of steps", "h200")
    .option("--json", "print rows, groups and fitted constants as JSON")
    .option("--markdown", "print tables to publish: ids, predictions and errors, no measured values")
    .helpOption("-h, --help", "print this help")
    .addHelpText("after", "\nExample:\n  $ warmpath calibrate --rows silicon_rows.csv --json")
    .action(async (options: CalibrateOptions) => {
      const text = await readRows(options.rows);
      const name = basename(options.rows);
      for (const line of isStepFile(text)
        ? steps(text, name, options, terminal)
        : silicon(text, name, options, terminal)) {
        terminal.print(line);
      }
    });
}

function silicon(text: string, name: string, options: CalibrateOptions, terminal: Terminal): string[] {
  const rows = parseSiliconRows(text, name);
  const fitted = options.fit === true ? fitAll(rows, options.subset, terminal) : undefined;
  const cells = fitted === undefined ? CONSTANTS : CONSTANTS.map((cell) => replaced(cell, fitted));
  const predictions = rows.map((row) => predictRow(row, cells));
  const calibration: Calibration = {
    file: name,
    predictions,
    groups: errorGroups(predictions),
    ...(fitted === undefined ? {} : { fit: { subset: options.subset, cells: fitted } }),
  };
  if (options.json === true) return [JSON.stringify(calibrationJson(calibration), null, 2)];
  if (options.markdown === true) return calibrationMarkdown(calibration);
  return calibrationLines(calibration, terminal.colours);
}

function fitAll(rows: readonly SiliconRow[], subset: RowSubset, terminal: Terminal): FittedCell[] {
  const chosen = rows.filter((row) => isInSubset(row.id, subset));
  const fitted: FittedCell[] = [];
  for (const cell of CONSTANTS) {
    const outcome = fitCell(cell, chosen);
    if (outcome === undefined) continue;
    terminal.printError(
      `fitted ${cell.name}: loss ${outcome.lossBefore.toFixed(4)} → ${outcome.lossAfter.toFixed(4)} in ${outcome.evaluations} evaluations`,
    );
    fitted.push({ name: cell.name, rows: outcome.rows, before: cell.constants, after: outcome.values });
  }
  const few = fitted.filter(({ rows: count }) => count < FIT_BOUNDS.length);
  if (few.length > 0) {
    const cells = few.map(({ name, rows: count }) => `${name} (${count})`).join(", ");
    terminal.printError(
      `too few rows to tell ${FIT_BOUNDS.length} constants apart: ${cells}; what was fitted describes these rows, not the engine`,
    );
  }
  return fitted;
}

function replaced(cell: ConstantsCell, fitted: readonly FittedCell[]): ConstantsCell {
  const found = fitted.find((one) => one.name === cell.name);
  return found === undefined ? cell : { ...cell, constants: found.after };
}

function steps(text: string, name: string, options: CalibrateOptions, terminal: Terminal): string[] {
  const fit = fitSteps(parseStepRows(text, name), options.gpu);
  if (options.json === true) return [JSON.stringify(stepFitJson(fit), null, 2)];
  return options.markdown === true ? stepFitMarkdown(fit) : stepFitLines(fit, terminal.colours);
}

async function readRows(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? String(cause);
    const reason =
      code === "ENOENT" ? "does not exist" : code === "EISDIR" ? "is a folder" : `cannot be read (${code})`;
    throw new WarmpathError("WP_INVALID_INPUT", `${file} ${reason}`, { cause });
  }
}
