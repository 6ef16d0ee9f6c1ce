import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

/** Everything that the results of the twin follow from, besides the experiment. */
const TWIN = ["core", "measure", "sim", "workload", "lab/experiment", "lab/results", "cli/commands/run"];

/** A digest of the code behind the twin's results: cells of two versions must not stand in one table. */
export function twinCodeDigest(): string {
  const digest = createHash("sha256");
  const files = readdirSync(ROOT, { recursive: true, encoding: "utf8" })
    .filter((path) => TWIN.some((part) => path.startsWith(`${part}/`)))
    .filter((path) => /\.(js|ts)$/.test(path) && !/\.(test|d)\.ts$/.test(path))
    .sort();
  for (const path of files) digest.update(`${path}\n`).update(readFileSync(join(ROOT, path)));
  return digest.digest("hex");
}
