import { readdirSync } from "node:fs";
import { join } from "node:path";

/** Folders of the repository that hold what others wrote, or what a run left behind. */
const NOT_OURS: ReadonlySet<string> = new Set(["node_modules", "dist", "data", "results", "reports", "fixtures"]);

/** A link of a page: its target as it is written, and the line that it is on. */
export interface MarkdownLink {
  readonly target: string;
  readonly line: number;
}

/** Paths of all Markdown files of a repository, relative to its root. */
export function markdownFiles(root: string, below = ""): string[] {
  return readdirSync(join(root, below), { withFileTypes: true }).flatMap((entry) => {
    const path = below === "" ? entry.name : `${below}/${entry.name}`;
    if (entry.name.startsWith(".") || NOT_OURS.has(entry.name)) return [];
    if (entry.isDirectory()) return markdownFiles(root, path);
    return entry.name.endsWith(".md") ? [path] : [];
  });
}

/** Links and images of a page that lead somewhere in the repository; addresses elsewhere are not ours to check. */
export function localLinks(text: string): MarkdownLink[] {
  return prose(text).flatMap((content, at) =>
    [...content.matchAll(/\]\(([^()\s]+)(?:\s+"[^"]*")?\)|^\[[^\]]+\]:\s+(\S+)/g)]
      .map(([, inline, defined]) => ({ target: inline ?? defined, line: at + 1 }))
      .filter(({ target }) => !/^[a-z][a-z0-9+.-]*:/i.test(target)),
  );
}

/** The anchors that GitHub gives to the headings of a page. */
export function anchors(text: string): Set<string> {
  const found = new Set<string>();
  for (const content of withoutFences(text)) {
    const [, title] = /^#{1,6}\s+(.+?)\s*#*$/.exec(content) ?? [];
    if (title === undefined) continue;
    const shown = title.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1");
    const name = shown
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\p{M}_\- ]/gu, "")
      .replaceAll(" ", "-");
    let anchor = name;
    for (let again = 1; found.has(anchor); again++) anchor = `${name}-${again}`;
    found.add(anchor);
  }
  return found;
}

/** Lines without code: what stands in a fence or between backticks is not a link. */
function prose(text: string): string[] {
  return withoutFences(text).map((line) => line.replaceAll(/(`+)(?!`).*?(?<!`)\1(?!`)/g, ""));
}

/** Lines of a page, those inside fences empty, so that numbers of lines stay. */
function withoutFences(text: string): string[] {
  let fence: string | undefined;
  return text.split("\n").map((line) => {
    const [, mark] = /^\s*(`{3,}|~{3,})/.exec(line) ?? [];
    if (fence === undefined) {
      fence = mark;
      return mark === undefined ? line : "";
    }
    if (mark !== undefined && mark.startsWith(fence) && line.trim() === mark) fence = undefined;
    return "";
  });
}
