import { mkdir, rm, rmdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { RequestRecord } from "../../../core/request-record.ts";
import { aiperfFiles } from "../../../lab/report/aiperf-export.ts";
import type { ReportCell } from "../../../lab/report/cell.ts";
import { matchingWindow } from "../../../lab/report/evidence-collector.ts";
import type { ReportModel, ReportSource } from "../../../lab/report/model.ts";
import { readRecords } from "../../../lab/results/records-file.ts";
import { RECORDS_FILE } from "../../../lab/results/store.ts";
import { AIPERF_CSV_FILE } from "../../../wire/aiperf/csv.ts";
import { AIPERF_RECORDS_FILE } from "../../../wire/aiperf/record-line.ts";
import { AIPERF_SUMMARY_FILE } from "../../../wire/aiperf/summary-file.ts";

/** Below a report or a results folder: what AIPerf would have written. */
export const AIPERF_FOLDER = "aiperf";

/** Writes the files that AIPerf would have written, one folder per cell; answers how many cells it wrote. */
export async function writeAiperf(
  { sources, cells }: Pick<ReportModel, "sources" | "cells">,
  out: string,
): Promise<number> {
  let written = 0;
  for (const [at, source] of sources.entries()) {
    if (source.kind !== "warmpath" || !source.records.isComplete) continue;
    const byId = new Map(cells.filter((cell) => cell.source === at).map((cell) => [cell.recordsId, cell]));
    let current: string | undefined;
    let records: RequestRecord[] = [];
    const finish = async (): Promise<void> => {
      const cell = current === undefined ? undefined : byId.get(current);
      if (cell !== undefined && (await writeCell(cell, records, source, out))) written += 1;
      records = [];
    };
    for await (const { cell, record } of readRecords(join(source.folder, RECORDS_FILE))) {
      if (cell !== current) {
        await finish();
        current = cell;
      }
      records.push(record);
    }
    await finish();
  }
  return written;
}

/** Removes what was written for cells, by their ids, and folders that nothing is left in. */
export async function removeAiperf(ids: readonly string[], out: string): Promise<void> {
  for (const id of ids) {
    const folder = folderOf(id, id.split("/")[0], out);
    for (const name of [AIPERF_SUMMARY_FILE, AIPERF_CSV_FILE, AIPERF_RECORDS_FILE]) {
      await rm(join(folder, name), { force: true });
    }
    // One that somebody has put something into is not empty, and stays.
    for (let at = folder; at.startsWith(out); at = dirname(at)) await rmdir(at).catch(() => {});
  }
}

function folderOf(id: string, arm: string, out: string): string {
  return join(out, arm, ...id.split("/").slice(1));
}

async function writeCell(
  cell: ReportCell,
  records: readonly RequestRecord[],
  source: ReportSource,
  out: string,
): Promise<boolean> {
  const window = matchingWindow(cell, records);
  if (window === undefined) return false;
  const fleet = source.config?.["fleet"] as { readonly model?: unknown } | undefined;
  const files = aiperfFiles(cell, records, window, {
    startedMs: source.startedAt === undefined ? 0 : Date.parse(source.startedAt),
    command: source.command,
    model: typeof fleet?.model === "string" ? fleet.model : undefined,
  });
  const folder = folderOf(cell.recordsId, cell.arm, out);
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, AIPERF_SUMMARY_FILE), files.summary);
  await writeFile(join(folder, AIPERF_CSV_FILE), files.csv);
  await writeFile(join(folder, AIPERF_RECORDS_FILE), `${files.records.join("\n")}\n`);
  return true;
}
