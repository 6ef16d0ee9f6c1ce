import type { z } from "zod";
import { WarmpathError } from "../../core/errors.ts";
import { problemLines } from "./problems.ts";
import { cellSchema, provenanceSchema, resultsFrameSchema } from "./schema.ts";
import { type CellResult, type Json, type Provenance, RESULTS_SCHEMA_VERSION, type ResultsFile } from "./types.ts";

/** The text of results.json: equal results give equal bytes, whatever order their keys were made in. */
export function serialiseResults(results: ResultsFile): string {
  const frame = mustFit(resultsFrameSchema, results, "");
  const cells = results.cells.map((cell, i) => mustFit(cellSchema, cell, `cells[${i}]`));
  return toText({ ...frame, config: sortedKeys(results.config), cells });
}

/** The text of provenance.json. */
export function serialiseProvenance(provenance: Provenance): string {
  return toText(mustFit(provenanceSchema, provenance, ""));
}

/** What could be read of a file, and one line for each thing that could not. */
export interface ReadOutcome<Content> {
  readonly content: Content | undefined;
  readonly problems: readonly string[];
}

/** Reads the text of a results.json from anywhere; cells that are not as they should be are left out and named. */
export function parseResults(text: string, source: string): ReadOutcome<ResultsFile> {
  const json = parseJson(text, source);
  if (json.problems.length > 0) return { content: undefined, problems: json.problems };
  const version = versionProblem(json.content);
  if (version !== undefined) return { content: undefined, problems: [`${source}: ${version}`] };
  const frame = resultsFrameSchema.safeParse(json.content);
  if (!frame.success) return { content: undefined, problems: named(source, problemLines(frame.error, json.content)) };
  const cells: CellResult[] = [];
  const problems: string[] = [];
  frame.data.cells.forEach((value, i) => {
    const cell = cellSchema.safeParse(value);
    if (cell.success) cells.push(cell.data);
    else problems.push(...named(source, problemLines(cell.error, value, `cells[${i}]`)));
  });
  return { content: { ...frame.data, cells }, problems };
}

/** Reads the text of a provenance.json. */
export function parseProvenance(text: string, source: string): ReadOutcome<Provenance> {
  const json = parseJson(text, source);
  if (json.problems.length > 0) return { content: undefined, problems: json.problems };
  const parsed = provenanceSchema.safeParse(json.content);
  if (parsed.success) return { content: parsed.data, problems: [] };
  return { content: undefined, problems: named(source, problemLines(parsed.error, json.content)) };
}

function versionProblem(json: unknown): string | undefined {
  if (typeof json !== "object" || json === null || !("schemaVersion" in json)) {
    return "is not a results file of Warmpath: it has no schemaVersion";
  }
  const { schemaVersion } = json;
  if (typeof schemaVersion !== "number" || schemaVersion <= RESULTS_SCHEMA_VERSION) return undefined;
  return `has schemaVersion ${schemaVersion}, and this version of Warmpath reads up to ${RESULTS_SCHEMA_VERSION}`;
}

function parseJson(text: string, source: string): ReadOutcome<unknown> {
  try {
    return { content: JSON.parse(text), problems: [] };
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error);
    return { content: undefined, problems: [`${source}: is not complete JSON: ${detail}`] };
  }
}

function named(source: string, problems: readonly string[]): string[] {
  return problems.map((problem) => `${source}: ${problem}`);
}

/** What we write must be what we could read; anything else is a mistake of the program. */
function mustFit<Content>(schema: z.ZodType<Content>, value: unknown, within: string): Content {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [problem] = problemLines(parsed.error, value, within);
  throw new WarmpathError("WP_INVALID_STATE", `results cannot be written: ${problem}`);
}

/** The schema orders what it knows; a configuration has keys of its own, which are sorted. */
function sortedKeys(value: Json): Json {
  if (Array.isArray(value)) return value.map(sortedKeys);
  if (typeof value !== "object" || value === null) return value;
  const object = value as { readonly [key: string]: Json };
  return Object.fromEntries(
    Object.keys(object)
      .sort()
      .map((key) => [key, sortedKeys(object[key])]),
  );
}

function toText(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
