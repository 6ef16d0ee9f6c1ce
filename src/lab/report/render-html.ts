import type { Block, ReportDocument } from "./document.ts";
import { escape } from "./escape.ts";
import { PAGE_STYLE } from "./page-style.ts";

/** The document as one page that needs nothing else: style and figures are in it, light or dark as the reader prefers. */
export function renderHtml({ title, sections }: ReportDocument): string {
  const contents = sections.map(({ id, title: name }) => `<li><a href="#${id}">${escape(name)}</a></li>`).join("");
  const body = sections.map(
    ({ id, title: name, blocks }) =>
      `<section id="${id}"><h2>${escape(name)}</h2>${blocks.map(blockOf).join("\n")}</section>`,
  );
  return [
    "<!doctype html>",
    `<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">`,
    `<meta name="color-scheme" content="light dark"><title>${escape(title)}</title><style>${PAGE_STYLE}</style></head>`,
    `<body><main><h1>${escape(title)}</h1><nav><ol>${contents}</ol></nav>`,
    ...body,
    "</main></body></html>",
    "",
  ].join("\n");
}

/** Names up to this length stay on one line. */
const SHORT = 28;

function blockOf(block: Block): string {
  switch (block.kind) {
    case "text":
      return `<p>${inline(block.text)}</p>`;
    case "list":
      return `<ul>${block.items.map((item) => `<li>${inline(item)}</li>`).join("")}</ul>`;
    case "figure":
      return `<figure>${block.svg}<figcaption>${escape(block.title)}</figcaption></figure>`;
    case "table": {
      const cell = (tag: "th" | "td", content: string, at: number): string => {
        const kind = block.columns[at].align === "right" ? "n" : content.length <= SHORT ? "k" : "";
        return `<${tag}${kind === "" ? "" : ` class="${kind}"`}>${inline(content)}</${tag}>`;
      };
      const head = block.columns.map(({ title }, at) => cell("th", title, at)).join("");
      const rows = block.rows.map((row) => `<tr>${row.map((content, at) => cell("td", content, at)).join("")}</tr>`);
      const caption = block.title === "" ? "" : `<caption>${inline(block.title)}</caption>`;
      return `<div class="table"><table>${caption}<thead><tr>${head}</tr></thead><tbody>${rows.join("")}</tbody></table></div>`;
    }
  }
}

function inline(content: string): string {
  return escape(content)
    .replaceAll(/\*\*(.+?)\*\*/g, "<strong>$1</strong>")
    .replaceAll(/`([^`]+)`/g, "<code>$1</code>");
}
