/** A table of a report: its title, and its rows by the titles of their columns. */
export interface ReadTable {
  readonly title: string;
  readonly columns: readonly string[];
  readonly rows: readonly Record<string, string>[];
}

/** The text of a section, without its heading's rank. */
export function sectionOf(markdown: string, title: string): string {
  const start = markdown.indexOf(`## ${title}\n`);
  if (start < 0) throw new Error(`the report has no section "${title}"`);
  const end = markdown.indexOf("\n## ", start + 3);
  return markdown.slice(start, end < 0 ? undefined : end);
}

/** The tables of a piece of Markdown, in order. Columns of the same title are numbered from the second on. */
export function tablesOf(markdown: string): ReadTable[] {
  return markdown.split("\n\n").flatMap((block, at, blocks) => {
    const lines = block.split("\n");
    if (!lines[0].startsWith("|")) return [];
    const cells = (line: string): string[] => line.slice(2, -2).split(" | ");
    const columns = cells(lines[0]).map((title, i, all) => {
      const before = all.slice(0, i).filter((other) => other === title).length;
      return before === 0 ? title : `${title} ${before + 1}`;
    });
    const rows = lines.slice(2).map((line) => Object.fromEntries(cells(line).map((cell, i) => [columns[i], cell])));
    return [{ title: (blocks[at - 1] ?? "").replaceAll("**", ""), columns, rows }];
  });
}
