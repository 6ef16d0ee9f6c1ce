import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type PublishedStudy, readPublished } from "../../../lab/experiment/published.ts";
import type { ReportSource } from "../../../lab/report/model.ts";

const PUBLISHED_FOLDER = fileURLToPath(new URL("../../../../presets/published/", import.meta.url));

/** The published table of the preset that a results folder comes from; undefined where there is none, or it ran on another trace. */
export async function publishedOf(sources: readonly ReportSource[]): Promise<PublishedStudy | undefined> {
  const [source] = sources;
  if (sources.length !== 1 || source.kind !== "warmpath") return undefined;
  const isPreset = source.command?.includes(` ${source.experiment}`) === true;
  const path = join(PUBLISHED_FOLDER, `${source.experiment}.json`);
  if (!isPreset || !existsSync(path)) return undefined;
  const { study } = readPublished(JSON.parse(await readFile(path, "utf8")));
  const trace = source.config?.["traceProvenance"] as { readonly sha256?: unknown } | undefined;
  return study?.traceSha256 === undefined || study.traceSha256 === trace?.sha256 ? study : undefined;
}
