import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { buildDocument } from "../../../lab/report/build-document.ts";
import type { ReportModel } from "../../../lab/report/model.ts";
import { renderHtml } from "../../../lab/report/render-html.ts";
import { figurePath, renderMarkdown } from "../../../lab/report/render-markdown.ts";
import { sweepTsv } from "../../../lab/report/sweep-tsv.ts";
import type { ReportFormat } from "./options.ts";

/** Writes a report in the wanted formats; answers the files it wrote. */
export async function writeReport(
  model: ReportModel,
  out: string,
  formats: readonly ReportFormat[],
): Promise<string[]> {
  const document = buildDocument(model);
  const written: string[] = [];
  const write = async (name: string, content: string): Promise<void> => {
    const path = join(out, name);
    await writeFile(path, content);
    written.push(path);
  };
  await mkdir(out, { recursive: true });
  if (formats.includes("md")) {
    await write("report.md", renderMarkdown(document));
    const figures = document.sections.flatMap(({ blocks }) =>
      blocks.flatMap((block) => (block.kind === "figure" ? [block] : [])),
    );
    if (figures.length > 0) await mkdir(join(out, "figures"), { recursive: true });
    for (const { name, svg } of figures) await writeFile(join(out, figurePath(name)), svg);
  }
  if (formats.includes("html")) await write("report.html", renderHtml(document));
  if (formats.includes("tsv")) await write(`benchmark-sweep-${stampOf(model)}.tsv`, sweepTsv(model));
  return written;
}

/** YYYYMMDD-HHMMSS of when the first run began, so that a report made again has the same name; else of now. */
function stampOf({ sources }: ReportModel): string {
  const started = sources.flatMap(({ startedAt }) => startedAt ?? []).sort()[0];
  const digits = (started ?? new Date().toISOString()).replaceAll(/\D/g, "");
  return `${digits.slice(0, 8)}-${digits.slice(8, 14).padEnd(6, "0")}`;
}
