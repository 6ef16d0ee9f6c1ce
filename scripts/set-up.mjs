/**
 * Makes the checkout ready for what comes next, and does nothing where it already is: `node scripts/set-up.mjs [--build |
 * --rebuild]`. Only Node built-ins, since it runs before anything is installed.
 */
import { spawnSync } from "node:child_process";
import { closeSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build, needsBuild } from "./set-up/build.mjs";
import { needsInstall } from "./set-up/install.mjs";

const OLDEST_NODE = [20, 19];
const LOCK_WAIT_MS = 600_000;

const root = fileURLToPath(new URL("..", import.meta.url));
const flags = new Set(process.argv.slice(2));
const wantsBuild = flags.has("--build") || flags.has("--rebuild");

const [major, minor] = process.versions.node.split(".").map(Number);
if (major < OLDEST_NODE[0] || (major === OLDEST_NODE[0] && minor < OLDEST_NODE[1])) {
  fail(`Warmpath needs Node ${OLDEST_NODE.join(".")} or newer; this is ${process.versions.node}.`);
}

if (somethingToDo()) {
  const unlock = lock(join(root, ".set-up.lock"));
  try {
    // Looked at again under the lock: another process may have done the work while this one waited.
    if (needsInstall(root)) install();
    if (flags.has("--rebuild") || (wantsBuild && needsBuild(root))) runBuild();
  } finally {
    unlock();
  }
}

function somethingToDo() {
  return flags.has("--rebuild") || needsInstall(root) || (wantsBuild && needsBuild(root));
}

function install() {
  say("installing dependencies from package-lock.json …");
  const startedMs = Date.now();
  // Nothing we depend on needs its install script, and NODE_ENV=production must not drop the compiler.
  const options = ["ci", "--ignore-scripts", "--include=dev", "--no-audit", "--no-fund", "--loglevel=error"];
  const npm = process.env.npm_execpath;
  const viaNode = npm !== undefined && /\.[cm]?js$/.test(npm);
  const result = viaNode
    ? spawnSync(process.execPath, [npm, ...options], { cwd: root, encoding: "utf8" })
    : spawnSync("npm", options, { cwd: root, encoding: "utf8", shell: process.platform === "win32" });
  if (result.status !== 0) {
    process.stderr.write(`${result.stdout ?? ""}${result.stderr ?? ""}`);
    fail(`npm ci failed${result.error === undefined ? "" : ` (${result.error.message})`}; its output is above.`);
  }
  say(`installed in ${seconds(startedMs)} s`);
}

function runBuild() {
  say("building …");
  const startedMs = Date.now();
  const result = build(root);
  if (!result.ok) {
    process.stderr.write(result.output);
    fail("the build failed; the compiler's output is above.");
  }
  say(`built in ${seconds(startedMs)} s`);
}

/** Holds the lock file, waiting for a living holder and taking over from a dead one. */
function lock(path) {
  const deadlineMs = Date.now() + LOCK_WAIT_MS;
  const pause = new Int32Array(new SharedArrayBuffer(4));
  for (let waited = false; ; waited = true) {
    try {
      const file = openSync(path, "wx");
      writeSync(file, String(process.pid));
      closeSync(file);
      let held = true;
      const unlock = () => {
        if (held) rmSync(path, { force: true });
        held = false;
      };
      process.once("exit", unlock);
      for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));
      return unlock;
    } catch (error) {
      if (error.code !== "EEXIST") throw error;
    }
    const holder = lockHolder(path);
    if (holder === "dead") rmSync(path, { force: true });
    if (holder !== "alive") continue;
    if (Date.now() > deadlineMs) fail(`another set-up still holds ${path}; remove the file if that is wrong.`);
    if (!waited) say("waiting for another set-up in this folder …");
    Atomics.wait(pause, 0, 0, 100);
  }
}

/** What became of the process that made the lock file: `gone` means that it has given the lock back. */
function lockHolder(path) {
  let written;
  try {
    written = readFileSync(path, "utf8");
  } catch {
    return "gone";
  }
  // Between creating the file and writing to it the holder is not known yet, but it is there.
  if (written === "") return "alive";
  try {
    process.kill(Number(written), 0);
    return "alive";
  } catch (error) {
    return error.code === "EPERM" ? "alive" : "dead";
  }
}

function seconds(startedMs) {
  return ((Date.now() - startedMs) / 1000).toFixed(1);
}

function say(line) {
  process.stderr.write(`set-up: ${line}\n`);
}

function fail(line) {
  process.stderr.write(`set-up: ${line}\n`);
  process.exit(1);
}
