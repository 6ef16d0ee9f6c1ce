/**
 * Known vulnerabilities of what is installed in production: `npm run check -- audit`. A high or critical one fails; a registry that
 * cannot be asked does not, and is said to have been skipped: whether it answers is not up to the change that is checked.
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const ANSWER_MS = 60_000;
const GRAVE = ["high", "critical"];

const { stdout, error } = spawnSync("npm", ["audit", "--omit=dev", "--json"], {
  cwd: fileURLToPath(new URL("..", import.meta.url)),
  encoding: "utf8",
  timeout: ANSWER_MS,
  shell: process.platform === "win32",
});
const report = parsed(stdout);
const counts = report?.metadata?.vulnerabilities;
if (counts === undefined) {
  const reason = report?.error?.summary || report?.message || error?.message || "no answer that can be read";
  process.stdout.write(`skipped: the registry could not be asked: ${String(reason).split("\n", 1)[0]}\n`);
} else {
  for (const { name, severity, range } of Object.values(report.vulnerabilities ?? {})) {
    process.stdout.write(`${severity}: ${name} ${range}; see npm audit\n`);
  }
  process.exitCode = GRAVE.some((severity) => counts[severity] > 0) ? 1 : 0;
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
