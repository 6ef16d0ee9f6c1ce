/**
 * Everything that must hold before a change is offered: `npm run check`. Goes on after a failure, so that one run shows
 * all that is wrong, and prints a step's output only if the step failed. `npm run check -- lint types` runs those alone.
 */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));

const steps = [
  { name: "lockfile", command: ["node", "scripts/complete-lockfile.mjs", "--check"] },
  { name: "audit", command: ["node", "scripts/audit.mjs"] },
  { name: "format", command: ["oxfmt", "--check"] },
  { name: "lint", command: ["oxlint", "--type-aware", "--deny-warnings"] },
  { name: "types", command: ["tsc", "--noEmit"] },
  { name: "page", command: ["tsc", "--noEmit", "-p", "web"] },
  { name: "layers", command: ["depcruise", "--config", ".dependency-cruiser.cjs", "src", "web"] },
  { name: "unused", command: ["knip"] },
  { name: "build", command: ["node", "scripts/set-up.mjs", "--build"] },
  { name: "package", command: ["publint", "--strict"] },
  { name: "unit", command: ["vitest", "run", "--project", "unit"] },
];

const wanted = process.argv.slice(2);
const unknown = wanted.find((name) => !steps.some((step) => step.name === name));
if (unknown !== undefined) {
  process.stderr.write(`check: no step "${unknown}"; there are ${steps.map((step) => step.name).join(", ")}\n`);
  process.exit(2);
}

const startedMs = performance.now();
const failed = [];
for (const step of steps) {
  if (wanted.length > 0 && !wanted.includes(step.name)) continue;
  const stepStartedMs = performance.now();
  const { ok, output } = await run(step.command);
  const [, skipped] = /^skipped: (.+)$/m.exec(output) ?? [];
  const sign = ok ? (skipped === undefined ? "✓" : "-") : "✗";
  const line = `${sign} ${step.name.padEnd(8)} ${seconds(stepStartedMs).padStart(6)} s`;
  if (ok) {
    process.stdout.write(skipped === undefined ? `${line}\n` : `${line}  skipped: ${skipped}\n`);
  } else {
    failed.push(step.name);
    process.stdout.write(`${line}\n\n${output.trimEnd()}\n\n`);
  }
}

const verdict = failed.length === 0 ? "all good" : `failed: ${failed.join(", ")}`;
process.stdout.write(`check: ${verdict}, ${seconds(startedMs)} s\n`);
process.exitCode = failed.length === 0 ? 0 : 1;

function run([name, ...options]) {
  const program = name === "node" ? process.execPath : join(root, "node_modules", ".bin", name);
  return new Promise((resolve) => {
    const child = spawn(program, options, {
      cwd: root,
      shell: process.platform === "win32",
      stdio: ["ignore", "pipe", "pipe"],
    });
    let output = "";
    child.stdout.on("data", (chunk) => (output += chunk));
    child.stderr.on("data", (chunk) => (output += chunk));
    child.on("error", (error) => resolve({ ok: false, output: `${output}${error.message}\n` }));
    child.on("close", (status) => resolve({ ok: status === 0, output }));
  });
}

function seconds(sinceMs) {
  return ((performance.now() - sinceMs) / 1000).toFixed(1);
}
