import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { REPOSITORY } from "../support/run-program.ts";

test("every error code is explained in the reference, and every explained code exists", () => {
  const source = readFileSync(join(REPOSITORY, "src/core/errors.ts"), "utf8");
  const reference = readFileSync(join(REPOSITORY, "docs/reference/errors.md"), "utf8");
  const declared = [...source.matchAll(/"(WP_[A-Z_]+)"/g)].map(([, code]) => code);
  const documented = [...reference.matchAll(/^\| `(WP_[A-Z_]+)`/gm)].map(([, code]) => code);
  expect(declared.length).toBeGreaterThan(0);
  expect(documented.sort()).toEqual(declared.sort());
});
