import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";

const ENTRY = "cli/main.js";
const PAGE = "web/index.html";
/** Not in dist, which is published. */
const STAMP = join("node_modules", ".cache", "warmpath", "built-from");

/** True if dist is missing or was built from other sources than those that are there now. */
export function needsBuild(root) {
  if (!existsSync(join(root, "dist", ENTRY))) return true;
  if (hasPage(root) && !existsSync(join(root, "dist", PAGE))) return true;
  try {
    return readFileSync(join(root, STAMP), "utf8") !== fingerprint(root);
  } catch {
    return true;
  }
}

/** Compiles src into dist in place, so that a running process keeps the files it may still load, and bundles the page. */
export function build(root) {
  // Taken before compiling: what changes meanwhile is built next time.
  const before = fingerprint(root);
  const compiler = join(root, "node_modules", "typescript", "bin", "tsc");
  const bundler = join(root, "node_modules", "vite", "bin", "vite.js");
  const steps = [
    [compiler, "-p", "tsconfig.build.json"],
    ...(hasPage(root) ? [[bundler, "build", "web", "--logLevel", "warn"]] : []),
  ];
  for (const words of steps) {
    const result = spawnSync(process.execPath, words, { cwd: root, encoding: "utf8" });
    if (result.status !== 0) return { ok: false, output: `${result.stdout}${result.stderr}` };
  }
  removeOrphans(root);
  const entry = join(root, "dist", ENTRY);
  if (existsSync(entry)) chmodSync(entry, 0o755);
  mkdirSync(join(root, STAMP, ".."), { recursive: true });
  writeFileSync(join(root, STAMP), before);
  return { ok: true };
}

/** Deletes compiled files whose source is gone; `dist/web` belongs to another build. */
function removeOrphans(root) {
  const dist = join(root, "dist");
  for (const file of filesUnder(dist)) {
    const path = relative(dist, file);
    if (path.startsWith("web")) continue;
    const source = path.replace(/(\.d\.ts|\.js)(\.map)?$/, ".ts");
    if (source !== path && !existsSync(join(root, "src", source))) rmSync(file);
  }
}

function hasPage(root) {
  return existsSync(join(root, PAGE));
}

function fingerprint(root) {
  const hash = createHash("sha256");
  const configuration = ["package.json", "tsconfig.json", "tsconfig.build.json"].map((name) => join(root, name));
  for (const file of [...configuration, ...filesUnder(join(root, "src")), ...filesUnder(join(root, "web"))]) {
    if (/\.test\.tsx?$/.test(file)) continue;
    const { mtimeMs, size } = statSync(file);
    hash.update(`${relative(root, file)} ${mtimeMs} ${size}\n`);
  }
  return hash.digest("hex");
}

function filesUnder(folder) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}
