import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const FOLDERS = ["docs", "node_modules"];
/** A paragraph that is letters and spaces to this share is prose; tables, lists of links and code are not. */
const PROSE_SHARE = 0.92;
const SHORTEST_PARAGRAPH = 80;

/** English prose that every checkout has: paragraphs of the documentation, the project's and its dependencies'. */
export function englishText(): string {
  const paragraphs = new Set<string>();
  for (const folder of FOLDERS) {
    for (const file of markdownIn(join(ROOT, folder))) {
      for (const paragraph of readFileSync(file, "utf8").split(/\n\s*\n/))
        if (isProse(paragraph)) paragraphs.add(paragraph);
    }
  }
  return [...paragraphs].join("\n\n");
}

function markdownIn(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".md"))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

function isProse(paragraph: string): boolean {
  if (paragraph.length < SHORTEST_PARAGRAPH) return false;
  const others = paragraph.replace(/[A-Za-z\s]/g, "").length;
  return 1 - others / paragraph.length >= PROSE_SHARE;
}
