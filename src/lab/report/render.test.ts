import { describe, expect, test } from "vitest";
import { list, type ReportDocument, table, text } from "./document.ts";
import { renderHtml } from "./render-html.ts";
import { renderMarkdown } from "./render-markdown.ts";

const DOCUMENT: ReportDocument = {
  title: "a & b",
  sections: [
    {
      id: "first",
      title: "First <section>",
      blocks: [
        text("**bold** and `code`, and <script>alert(1)</script>"),
        list(["one", "two"]),
        table(
          "Numbers",
          ["<Arm", "p50"],
          [
            ["a|b", "12"],
            ["two\nlines", "3"],
          ],
        ),
        { kind: "figure", name: "curve", title: "A curve", svg: "<svg></svg>" },
      ],
    },
  ],
};

describe("a report", () => {
  test("as Markdown: names to the left, numbers to the right, and nothing that breaks a table", () => {
    expect(renderMarkdown(DOCUMENT)).toBe(
      [
        "# a & b",
        "## First <section>",
        "**bold** and `code`, and <script>alert(1)</script>",
        "- one\n- two",
        "**Numbers**",
        "| Arm | p50 |\n| :--- | ---: |\n| a\\|b | 12 |\n| two lines | 3 |",
        "![A curve](figures/curve.svg)\n",
      ].join("\n\n"),
    );
  });

  test("as a page: whatever came from outside is text, and figures are in it", () => {
    const page = renderHtml(DOCUMENT);
    expect(page).toContain("<strong>bold</strong> and <code>code</code>");
    expect(page).toContain("&lt;script&gt;alert(1)&lt;/script&gt;");
    expect(page).not.toContain("<script");
    expect(page).toContain('<li><a href="#first">First &lt;section&gt;</a></li>');
    expect(page).toContain('<th class="k">Arm</th><th class="n">p50</th>');
    expect(page).toContain("<figure><svg></svg><figcaption>A curve</figcaption></figure>");
  });
});
