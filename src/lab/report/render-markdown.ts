import type { Block, ReportDocument, TableBlock } from "./document.ts";

/** Where a figure's file lies beside the report. */
export function figurePath(name: string): string {
  return `figures/${name}.svg`;
}

/** The document as Markdown; figures are links to files. */
export function renderMarkdown({ title, sections }: ReportDocument): string {
  const parts = [`# ${title}`];
  for (const section of sections) parts.push(`## ${section.title}`, ...section.blocks.map(blockOf));
  return `${parts.join("\n\n")}\n`;
}

function blockOf(block: Block): string {
  switch (block.kind) {
    case "text":
      return block.text;
    case "list":
      return block.items.map((item) => `- ${item}`).join("\n");
    case "figure":
      return `![${block.title}](${figurePath(block.name)})`;
    case "table":
      return tableOf(block);
  }
}

function tableOf({ title, columns, rows }: TableBlock): string {
  const line = (cells: readonly string[]): string => `| ${cells.map(cellOf).join(" | ")} |`;
  const rule = columns.map(({ align }) => (align === "left" ? ":---" : "---:"));
  const lines = [line(columns.map((column) => column.title)), `| ${rule.join(" | ")} |`, ...rows.map(line)];
  return [...(title === "" ? [] : [`**${title}**`, ""]), ...lines].join("\n");
}

/** A bar would end the cell, and a line break the table. */
function cellOf(cell: string): string {
  return cell.replaceAll("|", "\\|").replaceAll(/\s*\n\s*/g, " ");
}
