import { existsSync } from "node:fs";
import { join } from "node:path";
import { WarmpathError } from "../../../core/errors.ts";
import type { RequestRecord } from "../../../core/request-record.ts";
import { placeAiperfRuns, settingsOfArms } from "../../../lab/report/aiperf-arms.ts";
import { arrangeResults, type ReadResults } from "../../../lab/report/arrange-results.ts";
import type { ReportCell } from "../../../lab/report/cell.ts";
import { EvidenceCollector } from "../../../lab/report/evidence-collector.ts";
import { accountingOf, cellOfRecords, cellOfSummary } from "../../../lab/report/from-aiperf.ts";
import type { ReportInput, ReportSource } from "../../../lab/report/model.ts";
import type { Settings } from "../../../lab/report/settings.ts";
import { readRecords } from "../../../lab/results/records-file.ts";
import { readProvenance, readResults, RECORDS_FILE } from "../../../lab/results/store.ts";
import type { CellResult, ResultsFile } from "../../../lab/results/types.ts";
import type { Slo } from "../../../measure/slo.ts";
import { findFolders, type FoundFolder } from "./find-folders.ts";
import { folderLabels, foldersBelowCommon } from "./folder-labels.ts";
import { type AiperfFolder, readAiperfFolder } from "./read-aiperf.ts";
import { readSharedLoad } from "./read-load.ts";

/** What a report is asked to be about. */
export interface CollectOptions {
  /** `compare` holds the folders against each other, `pool` takes equal arms of several folders together. */
  readonly mode: "pool" | "compare";
  readonly baseline?: string | undefined;
  readonly slo?: Slo | undefined;
}

/** What a report is computed from, and which of the folders that were asked for it comes from. */
export interface CollectedInput extends ReportInput {
  /** Per source, the number of the folder. */
  readonly arguments: readonly number[];
}

/** Reads folders into what a report is computed from; what cannot be read is a line each, and the rest goes on. */
export async function collectInput(folders: readonly string[], options: CollectOptions): Promise<CollectedInput> {
  const { found, problems } = await findFolders(folders);
  const collection = new Collection(options, folderLabels(found.map(({ path }) => path)), problems);
  await collection.readOwn(found);
  await collection.readAiperf(found, folders);
  await collection.readLoads(found, folders);
  return collection.input();
}

class Collection {
  readonly #options: CollectOptions;
  readonly #labels: readonly string[];
  readonly #problems: string[];
  readonly #sources: ReportSource[] = [];
  readonly #cells: ReportCell[] = [];
  readonly #results: CellResult[] = [];
  readonly #settings = new Map<string, Settings>();
  readonly #evidence: EvidenceCollector = new EvidenceCollector();
  readonly #arguments: number[] = [];

  constructor(options: CollectOptions, labels: readonly string[], problems: string[]) {
    this.#options = options;
    this.#labels = labels;
    this.#problems = problems;
  }

  input(): CollectedInput {
    const { baseline, slo } = this.#options;
    return {
      sources: this.#sources,
      cells: this.#cells,
      settings: this.#settings,
      evidence: this.#evidence.evidence,
      gaps: this.#evidence.gaps,
      problems: this.#problems,
      baseline,
      slo,
      published: undefined,
      results: this.#results,
      arguments: this.#arguments,
    };
  }

  /** Reads results folders of our own, and their records as a stream. */
  async readOwn(found: readonly FoundFolder[]): Promise<void> {
    const files: ReadResults[] = [];
    const folders: string[] = [];
    for (const [at, { kind, path, argument }] of found.entries()) {
      if (kind !== "warmpath") continue;
      const { content, problems } = await readResults(path);
      this.#problems.push(...problems);
      if (content === undefined) continue;
      const provenance = await readProvenance(path);
      if (content.cells.length === 0) this.#problems.push(`${path}: has no cells`);
      else if (provenance.content?.finishedAt === null) this.#problems.push(`${path}: ${unfinishedRun(content)}`);
      files.push({ source: this.#sources.length, label: this.#labels[at], results: content });
      folders.push(path);
      this.#arguments.push(argument);
      this.#sources.push({
        kind: "warmpath",
        folder: path,
        experiment: content.experiment,
        startedAt: provenance.content?.startedAt,
        finishedAt: provenance.content?.finishedAt ?? undefined,
        command: provenance.content?.command,
        versions: provenance.content?.versions ?? {},
        host: provenance.content?.host ?? {},
        config: content.config,
        target: content.target,
        comparability: content.comparability,
        armFacts: content.arms ?? [],
        resumed: provenance.content?.resumed ?? [],
        promptsDigest: undefined,
        records: { isComplete: false, remark: undefined },
      });
    }
    const arranged = arrangeResults(files, this.#options.mode);
    this.#problems.push(...arranged.problems);
    for (const cell of arranged.cells) this.#cells.push(this.#withSlo(cell));
    for (const [arm, settings] of arranged.settings) this.#settings.set(arm, settings);
    for (const [at, { source, results }] of files.entries()) {
      this.#results.push(...results.cells);
      await this.#readOwnRecords(source, join(folders[at], RECORDS_FILE));
    }
  }

  async #readOwnRecords(source: number, path: string): Promise<void> {
    const own = this.#cells.filter((cell) => cell.source === source);
    const remark = existsSync(path) ? await this.#streamRecords(own, path) : `${RECORDS_FILE} is missing`;
    if (remark !== undefined && existsSync(path)) this.#problems.push(remark);
    this.#sources[source] = { ...this.#sources[source], records: { isComplete: remark === undefined, remark } };
  }

  /** Takes cell after cell from a file; a line that says why if not all of them could be used. */
  async #streamRecords(cells: readonly ReportCell[], path: string): Promise<string | undefined> {
    const byId = new Map(cells.map((cell) => [cell.recordsId, cell]));
    let remark: string | undefined;
    let current: string | undefined;
    let records: RequestRecord[] = [];
    const finish = (): void => {
      const cell = current === undefined ? undefined : byId.get(current);
      if (cell !== undefined) remark ??= this.#evidence.add(cell, records);
      records = [];
    };
    try {
      for await (const { cell, record } of readRecords(path)) {
        if (cell !== current) {
          finish();
          current = cell;
        }
        records.push(record);
      }
      finish();
    } catch (error) {
      // What came before is whole; the cell that the file breaks off in is not.
      if (!WarmpathError.isInstance(error)) throw error;
      return error.message;
    }
    const missing = cells.filter((cell) => cell.accounting.offered > 0 && !this.#evidence.evidence.has(cell.id));
    if (remark === undefined && missing.length > 0)
      remark = `${path}: has no records of ${missing.length} cells, such as ${missing[0].recordsId}`;
    return remark;
  }

  /** Reads runs of AIPerf and sorts them into arms. */
  async readAiperf(found: readonly FoundFolder[], arguments_: readonly string[]): Promise<void> {
    const folders = found.filter(({ kind }) => kind === "aiperf");
    const read: { folder: AiperfFolder; argument: number }[] = [];
    for (const { path, argument } of folders) {
      const folder = await readAiperfFolder(path);
      this.#problems.push(...folder.problems);
      if (folder.summary !== undefined || (folder.records ?? []).length > 0) read.push({ folder, argument });
    }
    const names = folderLabels(arguments_.map((name) => name.replace(/\/+$/, "")));
    const below = foldersBelowCommon(read.map(({ folder }) => folder.path));
    const runs = read.map(({ folder, argument }, at) => ({
      summary: folder.summary,
      below: below[at],
      folders: folder.path.split("/").filter((part) => part !== ""),
      arm: this.#options.mode === "compare" ? names[argument] : undefined,
    }));
    const positions = placeAiperfRuns(runs);
    const { settings, problems } = settingsOfArms(runs, positions);
    for (const [arm, own] of settings) this.#settings.set(arm, own);
    this.#problems.push(...problems);
    for (const [at, { folder, argument }] of read.entries()) {
      this.#arguments.push(argument);
      this.#addAiperf(folder, positions[at]);
    }
  }

  #addAiperf(folder: AiperfFolder, position: { arm: string; level: ReportCell["level"]; run: number }): void {
    const { summary, records } = folder;
    const source = this.#sources.length;
    const place = { source, ...position, slo: this.#options.slo ?? {} };
    const offered = summary === undefined ? undefined : accountingOf(summary).offered;
    const isComplete =
      records !== undefined && records.length > 0 && (offered === undefined || records.length === offered);
    const remark = recordsRemark(folder, offered, isComplete);
    if (remark !== undefined && records !== undefined) this.#problems.push(`${folder.path}: ${remark}`);
    if (summary?.wasCancelled === true) this.#problems.push(`${folder.path}: the run was cancelled before its end`);
    this.#sources.push({
      kind: "aiperf",
      folder: folder.path,
      experiment: modelOf(summary) ?? "AIPerf",
      startedAt: summary?.startTime,
      finishedAt: summary?.endTime,
      command: commandOf(summary),
      versions: summary?.aiperfVersion === undefined ? {} : { aiperf: summary.aiperfVersion },
      host: {},
      config: undefined,
      target: undefined,
      comparability: undefined,
      armFacts: [],
      resumed: [],
      promptsDigest: folder.promptsDigest,
      records: { isComplete, remark },
    });
    if (isComplete) {
      const cell = cellOfRecords(records, summary, place);
      this.#cells.push(cell);
      this.#evidence.add(cell, records);
    } else if (summary !== undefined) this.#cells.push(cellOfSummary(summary, place));
  }

  /** Reads loads: all folders are parts of one, or those of each argument where arguments are held against each other. */
  async readLoads(found: readonly FoundFolder[], arguments_: readonly string[]): Promise<void> {
    const parts = found.flatMap((folder, at) =>
      folder.kind === "load" ? [{ ...folder, label: this.#labels[at] }] : [],
    );
    if (parts.length === 0) return;
    if (this.#options.mode === "pool") {
      await this.#addLoad("load", parts);
      return;
    }
    const names = folderLabels(arguments_.map((name) => name.replace(/\/+$/, "")));
    for (const [argument, arm] of names.entries()) {
      const own = parts.filter((part) => part.argument === argument);
      if (own.length > 0) await this.#addLoad(arm, own);
    }
  }

  async #addLoad(arm: string, parts: readonly (FoundFolder & { readonly label: string })[]): Promise<void> {
    const { records, level, experiment, url, finishedAt, config, problems } = await readSharedLoad(parts);
    this.#problems.push(...problems);
    if (records.length === 0) return;
    const source = this.#sources.length;
    this.#arguments.push(parts[0].argument);
    this.#sources.push({
      kind: "warmpath",
      folder: parts.map(({ path }) => path).join(", "),
      experiment,
      startedAt: undefined,
      finishedAt,
      command: undefined,
      versions: {},
      host: {},
      config,
      target: url,
      comparability: undefined,
      armFacts: [],
      resumed: [],
      promptsDigest: undefined,
      records: { isComplete: problems.length === 0, remark: problems[0] },
    });
    const cell = cellOfRecords(records, undefined, { source, arm, level, run: 1, slo: this.#options.slo ?? {} });
    this.#cells.push(cell);
    this.#evidence.add(cell, records);
  }

  #withSlo(cell: ReportCell): ReportCell {
    const { slo } = this.#options;
    // Which requests kept other limits than the run's own only their records can tell.
    return slo === undefined ? cell : { ...cell, slo, goodputShare: undefined };
  }
}

/** A run that was cut short, or is not over yet: what is missing would otherwise pass for what was never asked for. */
function unfinishedRun({ cells, config }: ResultsFile): string {
  const planned = Array.isArray(config["arms"]) ? (config["arms"] as readonly { readonly name?: unknown }[]) : [];
  const missing = planned.flatMap(({ name }) =>
    typeof name === "string" && !cells.some(({ arm }) => arm === name) ? [name] : [],
  );
  const without = missing.length === 0 ? "" : `, and none of ${missing.join(", ")}`;
  return `the run is not finished: it has ${cells.length} cells so far${without}`;
}

function recordsRemark(
  { records }: AiperfFolder,
  offered: number | undefined,
  isComplete: boolean,
): string | undefined {
  if (isComplete) return undefined;
  if (records === undefined) return "profile_export.jsonl is missing";
  return `profile_export.jsonl has ${records.length} of ${offered ?? "unknown"} requests; tables are of the summary alone`;
}

function modelOf(summary: { readonly inputConfig: Readonly<Record<string, unknown>> } | undefined): string | undefined {
  const endpoint = summary?.inputConfig["endpoint"] as { readonly model_names?: readonly unknown[] } | undefined;
  const name = endpoint?.model_names?.[0];
  return typeof name === "string" ? `AIPerf, ${name}` : undefined;
}

function commandOf(
  summary: { readonly inputConfig: Readonly<Record<string, unknown>> } | undefined,
): string | undefined {
  const command = summary?.inputConfig["cli_command"];
  return typeof command === "string" ? command : undefined;
}
