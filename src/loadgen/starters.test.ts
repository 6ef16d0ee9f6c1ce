import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { endpointOf } from "./endpoint.ts";
import { readStarters, topicOf } from "./starters.ts";

function folderOf(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), "warmpath-starters-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
  return folder;
}

describe("starters", () => {
  test("are the texts of a folder by name, and nothing else in it", async () => {
    const folder = folderOf({
      "b.md": "# Bees\n\nThey fly.\n",
      "a.txt": "Ants walk.",
      "README.md": "no",
      "c.json": "{}",
    });
    const starters = await readStarters(folder);
    expect(starters).toEqual([
      { name: "a.txt", text: "Ants walk." },
      { name: "b.md", text: "# Bees\n\nThey fly." },
    ]);
    expect(starters.map(topicOf)).toEqual(["Ants walk.", "Bees"]);
  });

  test("are refused in one line if there are none, or an empty one", async () => {
    await expect(readStarters(folderOf({ "a.json": "{}" }))).rejects.toThrow(/has no \.md or \.txt files/);
    await expect(readStarters(folderOf({ "a.md": " \n" }))).rejects.toThrow(/a\.md: is empty/);
    await expect(readStarters("/nowhere")).rejects.toThrow("/nowhere: no such folder");
  });
});

describe("an endpoint", () => {
  test.each([
    ["http://127.0.0.1:8000", { origin: "http://127.0.0.1:8000", basePath: "" }],
    ["http://127.0.0.1:8000/v1", { origin: "http://127.0.0.1:8000", basePath: "" }],
    ["https://host/api/v1/", { origin: "https://host", basePath: "/api" }],
  ])("%s is taken apart", (url, endpoint) => {
    expect(endpointOf(url)).toEqual(endpoint);
  });

  test.each(["host:8000", "ftp://host", "nothing"])("%s is refused", (url) => {
    expect(() => endpointOf(url)).toThrow(/http/);
  });
});
