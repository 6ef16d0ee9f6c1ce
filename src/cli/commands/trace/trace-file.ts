import { createHash } from "node:crypto";
import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { basename } from "node:path";
import { type MooncakeRow, parseMooncakeTrace, writeMooncakeRow } from "../../../wire/mooncake-trace.ts";
import type { TraceProvenance } from "../../../workload/trace/provenance.ts";
import type { Terminal } from "../../terminal.ts";
import { usage } from "./options.ts";

/** A trace that was read, with where it comes from. */
export interface TraceFile {
  readonly source: string;
  readonly sha256: string;
  readonly rows: readonly MooncakeRow[];
  readonly provenance: TraceProvenance;
}

const LINES_PER_PRINT = 1000;
const READ_FAILURES: Readonly<Record<string, string>> = {
  ENOENT: "no such file",
  EISDIR: "is a folder, not a file",
  EACCES: "may not be read",
};

/** Reads a trace file, or stdin for `-`; a malformed line ends with one line that names it. */
export async function readTraceFile(file: string, blockTokens: number, terminal: Terminal): Promise<TraceFile> {
  const source = file === "-" ? "stdin" : basename(file);
  const written = file === "-" ? await terminal.readStdin() : await readText(file);
  const sha256 = sha256Of(written);
  const rows = parseMooncakeTrace(written, source, blockTokens);
  const earlier = file === "-" ? undefined : await readProvenance(file, sha256);
  return { source, sha256, rows, provenance: earlier ?? { source, sha256, sourceRows: rows.length, steps: [] } };
}

/** Writes rows to a file with their provenance beside it, or to stdout; returns the sha256 of what was written. */
export async function writeTrace(
  rows: readonly MooncakeRow[],
  out: string | undefined,
  provenance: TraceProvenance | undefined,
  terminal: Terminal,
): Promise<string> {
  const lines = rows.map(writeMooncakeRow);
  const written = lines.map((line) => `${line}\n`).join("");
  const sha256 = sha256Of(written);
  if (out === undefined) {
    for (let at = 0; at < lines.length; at += LINES_PER_PRINT) {
      terminal.print(lines.slice(at, at + LINES_PER_PRINT).join("\n"));
    }
    return sha256;
  }
  await writeWhole(out, written);
  const record = JSON.stringify({ sha256, rows: rows.length, provenance: provenance ?? null }, null, 2);
  await writeWhole(provenancePath(out), `${record}\n`);
  return sha256;
}

/** Tells what was made: on stdout where the trace went to a file, else on stderr, out of the way of the trace. */
export function printSummary(lines: readonly string[], out: string | undefined, terminal: Terminal): void {
  for (const line of lines) {
    if (out === undefined) terminal.printError(line);
    else terminal.print(line);
  }
}

async function readText(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (cause) {
    const { code = String(cause) } = cause as NodeJS.ErrnoException;
    throw usage(`${file}: ${READ_FAILURES[code] ?? `cannot be read (${code})`}`, cause);
  }
}

/** Nobody ever sees half a file: it is written under another name first. */
async function writeWhole(file: string, content: string): Promise<void> {
  const partial = `${file}.${process.pid}.partial`;
  try {
    await writeFile(partial, content);
    await rename(partial, file);
  } catch (cause) {
    await rm(partial, { force: true });
    const { code = String(cause) } = cause as NodeJS.ErrnoException;
    throw usage(`${file}: cannot be written (${code === "ENOENT" ? "no such folder" : code})`, cause);
  }
}

/** The provenance beside a file, if it is still about this very content. */
async function readProvenance(file: string, sha256: string): Promise<TraceProvenance | undefined> {
  let record: { sha256?: unknown; provenance?: TraceProvenance | null };
  try {
    record = JSON.parse(await readFile(provenancePath(file), "utf8")) as typeof record;
  } catch {
    return undefined;
  }
  return record.sha256 === sha256 && Array.isArray(record.provenance?.steps) ? record.provenance : undefined;
}

function provenancePath(file: string): string {
  return `${file}.provenance.json`;
}

function sha256Of(written: string): string {
  return createHash("sha256").update(written).digest("hex");
}
