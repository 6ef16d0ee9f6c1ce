import { describe, expect, test } from "vitest";
import { fileTree, linkPackages } from "../support/file-tree.ts";
import { runTool } from "../support/run-program.ts";

interface LintResult {
  readonly diagnostics: readonly { readonly code: string; readonly filename: string }[];
}

const IMPURE = `export function impure(): unknown[] {
  setTimeout(() => {}, 1);
  return [Date.now(), new Date(), performance.now(), Math.random(), globalThis.performance.now()];
}
`;

async function complaintsAbout(files: Readonly<Record<string, string>>): Promise<string[]> {
  const folder = fileTree(files, [".oxlintrc.json", "tsconfig.json"]);
  linkPackages(folder);
  const { stdout } = await runTool("oxlint", ["--type-aware", "--format", "json", "src"], { folder });
  const { diagnostics } = JSON.parse(stdout) as LintResult;
  return diagnostics.map(({ code, filename }) => `${filename} ${code}`).sort();
}

describe("the lint rules", () => {
  test.each(["core", "measure", "workload", "sim", "wire", "tokenizer"])(
    "keep clocks, timers and chance out of src/%s",
    async (layer) => {
      const complaints = await complaintsAbout({ [`src/${layer}/impure.ts`]: IMPURE });
      const globals = `src/${layer}/impure.ts eslint(no-restricted-globals)`;
      const properties = `src/${layer}/impure.ts eslint(no-restricted-properties)`;
      expect(complaints).toEqual([globals, globals, globals, globals, properties, properties]);
    },
  );

  test("allow them in the layers that talk to the world, and in tests", async () => {
    expect(await complaintsAbout({ "src/gateway/impure.ts": IMPURE, "src/core/impure.test.ts": IMPURE })).toEqual([]);
  });

  test("report a promise that nobody waits for", async () => {
    const floating = "export function start(): void {\n  Promise.resolve(1);\n}\n";
    const complaints = await complaintsAbout({ "src/gateway/start.ts": floating });
    expect(complaints).toEqual(["src/gateway/start.ts typescript(no-floating-promises)"]);
  });
});
