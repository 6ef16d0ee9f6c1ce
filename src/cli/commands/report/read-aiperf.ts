import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { RequestRecord } from "../../../core/request-record.ts";
import { AIPERF_INPUTS_FILE, parseAiperfInputs } from "../../../wire/aiperf/inputs-file.ts";
import { AIPERF_RECORDS_FILE, AiperfRecordReader } from "../../../wire/aiperf/record-line.ts";
import { AIPERF_SUMMARY_FILE, type AiperfSummary, parseAiperfSummary } from "../../../wire/aiperf/summary-file.ts";

/** What a folder of one run of AIPerf holds. */
export interface AiperfFolder {
  readonly path: string;
  readonly summary: AiperfSummary | undefined;
  /** Measured requests, without the warm-up; undefined where the file is missing or cannot be read. */
  readonly records: readonly RequestRecord[] | undefined;
  /** Digest of the prompts in inputs.json, whatever ids AIPerf drew. */
  readonly promptsDigest: string | undefined;
  readonly problems: readonly string[];
}

/** Larger files of prompts are not parsed for a digest. */
const LARGEST_INPUTS_BYTES = 256e6;

/** Reads a run of AIPerf. */
export async function readAiperfFolder(path: string): Promise<AiperfFolder> {
  const problems: string[] = [];
  const summary = await readSummary(path, problems);
  const records = await readRecords(path, problems);
  return { path, summary, records, promptsDigest: await digestOfPrompts(path), problems };
}

async function readSummary(path: string, problems: string[]): Promise<AiperfSummary | undefined> {
  const file = join(path, AIPERF_SUMMARY_FILE);
  const text = await readIfThere(file);
  if (text === undefined) return undefined;
  const parsed = parseAiperfSummary(text);
  if (parsed.ok) return parsed.summary;
  problems.push(`${file}: ${parsed.problem}`);
  return undefined;
}

async function readRecords(path: string, problems: string[]): Promise<RequestRecord[] | undefined> {
  const file = join(path, AIPERF_RECORDS_FILE);
  if ((await sizeOf(file)) === undefined) return undefined;
  const reader = new AiperfRecordReader();
  const records: RequestRecord[] = [];
  let number = 0;
  let broken = 0;
  let first: string | undefined;
  for await (const line of createInterface({ input: createReadStream(file), crlfDelay: Infinity })) {
    number += 1;
    if (line.trim() === "") continue;
    const read = reader.read(line);
    if (!read.ok) {
      broken += 1;
      first ??= `${file}:${number}: ${read.problem}`;
    } else if (!read.isWarmUp) records.push(read.record);
  }
  if (first !== undefined) problems.push(broken === 1 ? first : `${first}, and ${broken - 1} more lines`);
  return records;
}

async function digestOfPrompts(path: string): Promise<string | undefined> {
  const file = join(path, AIPERF_INPUTS_FILE);
  const size = await sizeOf(file);
  if (size === undefined || size > LARGEST_INPUTS_BYTES) return undefined;
  const inputs = parseAiperfInputs(await readFile(file, "utf8"));
  if (inputs === undefined) return undefined;
  const hash = createHash("sha256");
  for (const payload of inputs.payloads) hash.update(payload).update("\n");
  return hash.digest("hex");
}

async function readIfThere(file: string): Promise<string | undefined> {
  return (await sizeOf(file)) === undefined ? undefined : readFile(file, "utf8");
}

async function sizeOf(file: string): Promise<number | undefined> {
  try {
    return (await stat(file)).size;
  } catch {
    return undefined;
  }
}
