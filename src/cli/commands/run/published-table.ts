import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type PublishedStudy, readPublished } from "../../../lab/experiment/published.ts";
import type { PreparedTrace } from "../../../lab/experiment/workload.ts";
import { type ExperimentFile, invalid } from "./experiment-file.ts";

/** The study of a preset, or why no error against it can be given. */
export interface PublishedTable {
  readonly study: PublishedStudy | undefined;
  readonly refusal: string | undefined;
}

/** Reads the published table that belongs to an experiment: `published/NAME.json` beside its file. */
export async function readPublishedTable(
  { experiment, folder, source }: ExperimentFile,
  trace: PreparedTrace | undefined,
): Promise<PublishedTable> {
  const path = join(folder, "published", `${experiment.name}.json`);
  if (!existsSync(path)) {
    throw invalid(`--compare-published: ${source} has no published table (published/${experiment.name}.json)`);
  }
  const { study, problems } = readPublished(parsed(await readFile(path, "utf8"), experiment.name));
  if (study === undefined) throw invalid(`published/${experiment.name}.json: ${problems[0]}`);
  const { traceSha256 } = study;
  if (traceSha256 === undefined || trace?.provenance.sha256 === traceSha256) return { study, refusal: undefined };
  const ran =
    trace === undefined ? "no trace" : `${trace.provenance.source} (sha256 ${trace.provenance.sha256.slice(0, 12)})`;
  const needed = `the study's trace has sha256 ${traceSha256.slice(0, 12)}`;
  return {
    study: undefined,
    refusal: `published: ${study.study}: ran on ${ran}, ${needed}; no error against the study is given`,
  };
}

function parsed(text: string, name: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (cause) {
    throw invalid(`published/${name}.json: is not JSON: ${(cause as SyntaxError).message}`, cause);
  }
}
