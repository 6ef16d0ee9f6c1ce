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

/** What a suite is called inside its preset's folder. */
const SUITE_FILE = "suite.yaml";

/** An experiment that was read, and where from. */
export interface ExperimentFile {
  readonly experiment: Experiment;
  /** As the user named it. */
  readonly source: string;
  readonly folder: string;
  /** Name of the preset, where it is one. */
  readonly preset: string | undefined;
}

/** A file of the user or of ours, parsed and not yet judged. */
export interface InputFile {
  readonly content: unknown;
  /** As the user named it. */
  readonly source: string;
  readonly folder: string;
  /** Name of the preset, where it is one. */
  readonly preset: string | undefined;
}

/** Reads a file by its path, or a preset by its name: NAME.yaml of an experiment, NAME/suite.yaml of a suite. */
export async function readInputFile(name: string): Promise<InputFile> {
  const isPreset = !/[./\\]/.test(name);
  const presets = [join(PRESETS_FOLDER, `${name}.yaml`), join(PRESETS_FOLDER, name, SUITE_FILE)];
  const path = isPreset ? presets.find((candidate) => existsSync(candidate)) : name;
  if (path === undefined) {
    const names = [...(await presetNames()), ...(await suiteNames())].sort();
    throw invalid(`there is no preset "${name}"; there are ${names.join(", ")}, or name a file`);
  }
  const content = parseYaml(await readText(path), name);
  return { content, source: name, folder: dirname(resolve(path)), preset: isPreset ? name : undefined };
}

/** Reads an experiment by its path, or a preset by its name; every problem is one line on stderr. */
export async function readExperimentFile(name: string, terminal: Terminal): Promise<ExperimentFile> {
  return experimentOf(await readInputFile(name), terminal);
}

/** The experiment that a file is meant to be. */
export function experimentOf({ content, ...file }: InputFile, terminal: Terminal): ExperimentFile {
  const { experiment, problems } = readExperiment(content);
  if (experiment === undefined) throw allOf(problems, file.source, terminal);
  return { experiment, ...file };
}

/** Names of the presets, in order. */
export async function presetNames(): Promise<string[]> {
  const files = await readdir(PRESETS_FOLDER);
  return files.flatMap((file) => (file.endsWith(".yaml") ? [file.slice(0, -".yaml".length)] : [])).sort();
}

async function suiteNames(): Promise<string[]> {
  const entries = await readdir(PRESETS_FOLDER, { withFileTypes: true });
  const folders = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  return folders.filter((name) => existsSync(join(PRESETS_FOLDER, name, SUITE_FILE)));
}

/** Reads the trace of an experiment: the first of its files that is beside the experiment or in the data folder. */
export async function readExperimentTrace(file: ExperimentFile): Promise<PreparedTrace | undefined> {
  const { trace } = file.experiment.workload;
  if (trace === undefined) return undefined;
  const read = await readTrace(trace, file.folder);
  if (read !== undefined) return read;
  throw invalid(`workload.trace.files: ${whereTraceIsNot(trace)}`);
}

/** Reads a trace and prepares it; undefined where none of its files is in one of the folders or in the data folder. */
export async function readTrace(trace: TraceConfig, ...folders: readonly string[]): Promise<PreparedTrace | undefined> {
  const candidates = trace.files.flatMap((file) => [...folders, dataFolder()].map((folder) => resolve(folder, file)));
  const path = candidates.find((candidate) => existsSync(candidate));
  if (path === undefined) return undefined;
  const written = await readText(path);
  const source = basename(path);
  const rows = parseMooncakeTrace(written, source, trace.blockTokens);
  const sha256 = createHash("sha256").update(written).digest("hex");
  return prepareTrace(trace, rows, { source, sha256, sourceRows: rows.length, steps: [] });
}

/** Says where a trace that is not there was looked for. */
export function whereTraceIsNot({ files }: TraceConfig): string {
  return `${files.join(" or ")} is neither beside the experiment nor in the data folder ${dataFolder()} (set WARMPATH_DATA, or see warmpath trace fetch)`;
}

function dataFolder(): string {
  return process.env["WARMPATH_DATA"] || "data";
}

/** Parses YAML; a mistake is one line with its line number. */
export function parseYaml(text: string, source: string): unknown {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, merge: true });
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
export function allOf(problems: readonly string[], source: string, terminal: Terminal): WarmpathError {
  for (const problem of problems.slice(0, -1)) terminal.printError(`warmpath run: ${source}: ${problem}`);
  return invalid(`${source}: ${problems.at(-1)}`);
}

const READ_FAILURES: Readonly<Record<string, string>> = {
  ENOENT: "no such file",
  EISDIR: "is a folder, not a file",
  EACCES: "may not be read",
};

export async function readText(path: string): Promise<string> {
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
