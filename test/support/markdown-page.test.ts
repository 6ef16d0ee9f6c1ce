import { expect, test } from "vitest";
import { anchors, localLinks } from "./markdown-page.ts";

test("links of a page are those of its prose that stay in the repository", () => {
  const page = [
    "[one](a.md#x) and ![image](b.png), [out](https://example.org), [mail](mailto:a@example.org)",
    "`[code](c.md)` [two](#here)",
    "```sh",
    "[fenced](d.md)",
    "```",
    "[named]: ../e.md",
  ].join("\n");
  expect(localLinks(page)).toEqual([
    { target: "a.md#x", line: 1 },
    { target: "b.png", line: 1 },
    { target: "#here", line: 2 },
    { target: "../e.md", line: 6 },
  ]);
});

test("anchors are those of GitHub: punctuation gone, spaces to dashes, repeated headings counted", () => {
  const page = [
    "# API keys",
    "## `--on local`: what, and why?",
    "## A [link](b.md)",
    "## A link",
    "```",
    "# no",
    "```",
  ];
  expect([...anchors(page.join("\n"))]).toEqual(["api-keys", "--on-local-what-and-why", "a-link", "a-link-1"]);
});
