import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { WarmpathError } from "../../../core/errors.ts";
import type { RequestRecord } from "../../../core/request-record.ts";
import type { ReportLevel } from "../../../lab/report/cell.ts";
import { readRecords } from "../../../lab/results/records-file.ts";
import { RECORDS_FILE } from "../../../lab/results/store.ts";
import type { Json } from "../../../lab/results/types.ts";

/** What `warmpath load --out` writes last: without it a folder is of a load that was cut off. */
export const LOAD_SUMMARY_FILE = "summary.json";

const summarySchema = z.object({
  model: z.string(),
  accounting: z.object({ offered: z.number() }),
  settings: z.looseObject({
    url: z.string(),
    concurrency: z.number().optional(),
    rate: z.number().optional(),
    speed: z.number(),
    schedule: z.string().optional(),
  }),
});

type LoadSummary = z.infer<typeof summarySchema>;

/** One load, made by as many processes on as many machines as there are folders. */
export interface SharedLoad {
  readonly records: readonly RequestRecord[];
  readonly level: ReportLevel;
  readonly experiment: string;
  readonly url: string;
  readonly finishedAt: string | undefined;
  readonly config: { readonly [key: string]: Json };
  readonly problems: readonly string[];
}

/**
 * Takes the folders of one load together. Each part counts time from its own start, so parts that began seconds apart lie on each
 * other here; a request is named by its folder too, since parts number theirs alike.
 */
export async function readSharedLoad(
  folders: readonly { readonly path: string; readonly label: string }[],
): Promise<SharedLoad> {
  const records: RequestRecord[] = [];
  const summaries: LoadSummary[] = [];
  const problems: string[] = [];
  let finishedMs = -Infinity;
  for (const { path, label } of folders) {
    const file = join(path, LOAD_SUMMARY_FILE);
    const { data, error } = summarySchema.safeParse(parsed(await readFile(file, "utf8")));
    if (error !== undefined) {
      const field = error.issues[0].path.join(".");
      problems.push(`${file}: is no summary of a load${field === "" ? "" : ` (${field})`}`);
      continue;
    }
    const own = await recordsIn(path, label, problems);
    if (own.length !== data.accounting.offered) {
      problems.push(`${path}: ${RECORDS_FILE} has ${own.length} of ${data.accounting.offered} requests`);
    }
    summaries.push(data);
    for (const record of own) records.push(record);
    finishedMs = Math.max(finishedMs, (await stat(file)).mtimeMs);
  }
  const urls = new Set(summaries.map(({ settings }) => settings.url));
  if (urls.size > 1) problems.push(`parts of one load went to different endpoints: ${[...urls].join(", ")}`);
  return {
    records,
    level: levelOf(summaries),
    experiment: `load, ${summaries[0]?.model ?? "unknown model"}, ${folders.length} parts`,
    url: [...urls].join(", "),
    finishedAt: Number.isFinite(finishedMs) ? new Date(finishedMs).toISOString() : undefined,
    config: (summaries[0]?.settings ?? {}) as { readonly [key: string]: Json },
    problems,
  };
}

/** Undefined where it is not JSON, such as a file that breaks off. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

async function recordsIn(path: string, label: string, problems: string[]): Promise<RequestRecord[]> {
  const records: RequestRecord[] = [];
  try {
    for await (const { record } of readRecords(join(path, RECORDS_FILE))) {
      records.push({ ...record, id: `${label}/${record.id}`, session: record.session && `${label}/${record.session}` });
    }
  } catch (error) {
    if (!WarmpathError.isInstance(error)) throw error;
    problems.push(error.message);
  }
  return records;
}

/** Parts add up: four times thirty conversations are a hundred and twenty. */
function levelOf(summaries: readonly LoadSummary[]): ReportLevel {
  const sum = (of: (settings: LoadSummary["settings"]) => number | undefined): number | undefined => {
    const all = summaries.flatMap(({ settings }) => of(settings) ?? []);
    return all.length === 0 ? undefined : all.reduce((total, one) => total + one, 0);
  };
  const first = summaries[0]?.settings;
  if (first?.schedule !== undefined) return { speed: first.speed, workers: undefined };
  const rateRps = sum(({ rate }) => rate);
  if (rateRps !== undefined) return { rateRps, workers: undefined };
  return { concurrency: sum(({ concurrency }) => concurrency), workers: undefined };
}
