import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { LineCounter, parseDocument } from "yaml";
import { WarmpathError } from "../../../core/errors.ts";
import { readExperiment } from "../../../lab/experiment/read.ts";
import { prepareTrace } from "../../../lab/experiment/trace.ts";
import type { Experiment, TraceConfig } from "../../../lab/experiment/types.ts";
import type { PreparedTrace } from "../../../lab/experiment/workload.ts";
import { parseMooncakeTrace } from "../../../wire/mooncake-trace.ts";
import type { Terminal } from "../../terminal.ts";

/** Presets lie beside the sources and beside the built files, equally far up. */
const PRESETS_FOLDER = fileURLToPath(new URL("../../../../presets/", import.meta.url));

/** An experiment that was read, and where from. */
export interface ExperimentFile {
  readonly experiment: Experiment;
  /** As the user named it. */
  readonly source: string;
  readonly folder: string;
  /** Name of the preset, where it is one. */
  readonly preset: string | undefined;
}

/** Reads an experiment by its path, or a preset by its name; every problem is one line on stderr. */
export async function readExperimentFile(name: string, terminal: Terminal): Promise<ExperimentFile> {
  const isPreset = !/[./\\]/.test(name);
  const path = isPreset ? join(PRESETS_FOLDER, `${name}.yaml`) : name;
  if (isPreset && !existsSync(path)) {
    throw invalid(`there is no preset "${name}"; there are ${(await presetNames()).join(", ")}, or name a file`);
  }
  const content = parseYaml(await readText(path), name);
  const { experiment, problems } = readExperiment(content);
  if (experiment === undefined) throw allOf(problems, name, terminal);
  return { experiment, source: name, folder: dirname(resolve(path)), preset: isPreset ? name : undefined };
}

/** Names of the presets, in order. */
export async function presetNames(): Promise<string[]> {
  const files = await readdir(PRESETS_FOLDER);
  return files.flatMap((file) => (file.endsWith(".yaml") ? [file.slice(0, -".yaml".length)] : [])).sort();
}

/** Reads the trace of an experiment: the first of its files that is beside the experiment or in the data folder. */
export async function readExperimentTrace(file: ExperimentFile): Promise<PreparedTrace | undefined> {
  const { trace } = file.experiment.workload;
  if (trace === undefined) return undefined;
  const path = findTrace(trace, file.folder);
  const written = await readText(path);
  const source = basename(path);
  const rows = parseMooncakeTrace(written, source, trace.blockTokens);
  const sha256 = createHash("sha256").update(written).digest("hex");
  return prepareTrace(trace, rows, { source, sha256, sourceRows: rows.length, steps: [] });
}

function findTrace({ files }: TraceConfig, folder: string): string {
  const data = process.env["WARMPATH_DATA"] || "data";
  const candidates = files.flatMap((file) => [resolve(folder, file), resolve(data, file)]);
  const found = candidates.find((candidate) => existsSync(candidate));
  if (found !== undefined) return found;
  const names = files.join(" or ");
  throw invalid(
    `workload.trace.files: ${names} is neither beside the experiment nor in the data folder ${data} (set WARMPATH_DATA, or see warmpath trace fetch)`,
  );
}

function parseYaml(text: string, source: string): unknown {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const problem = document.errors[0];
  if (problem !== undefined) {
    throw invalid(`${source} line ${lines.linePos(problem.pos[0]).line}: ${problem.message.split("\n")[0]}`);
  }
  try {
    return document.toJS();
  } catch (cause) {
    throw invalid(`${source}: ${cause instanceof Error ? cause.message : String(cause)}`, cause);
  }
}

/** All problems but the last are printed, the last one is thrown and printed with the exit code. */
function allOf(problems: readonly string[], source: string, terminal: Terminal): WarmpathError {
  for (const problem of problems.slice(0, -1)) terminal.printError(`warmpath run: ${source}: ${problem}`);
  return invalid(`${source}: ${problems.at(-1)}`);
}

const READ_FAILURES: Readonly<Record<string, string>> = {
  ENOENT: "no such file",
  EISDIR: "is a folder, not a file",
  EACCES: "may not be read",
};

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (cause) {
    const { code = String(cause) } = cause as NodeJS.ErrnoException;
    throw invalid(`${path}: ${READ_FAILURES[code] ?? `cannot be read (${code})`}`, cause);
  }
}

/** An error that ends the command with one line and exit code 2. */
export function invalid(message: string, cause?: unknown): WarmpathError {
  return new WarmpathError("WP_INVALID_INPUT", message, { cause });
}
