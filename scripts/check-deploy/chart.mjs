/** The Helm chart: lint and render with its own values and with every example. */
import { existsSync, readdirSync } from "node:fs";
import { basename, join } from "node:path";
import { helm, KUBERNETES_VERSION, run } from "./tools.mjs";

/** Routes to somebody, which the chart's own values leave open. */
const LEAST = ["--set", "discovery.service=engines"];

/** What each example renders to, by its name; a problem in place of what cannot be rendered. */
export function renderedExamples(folder) {
  const chart = chartOf(folder);
  return [{ name: "values", options: LEAST }, ...examplesOf(chart)].map(({ name, options }) => {
    const words = [
      "template",
      "warmpath",
      chart,
      "--namespace",
      "llm",
      "--kube-version",
      KUBERNETES_VERSION,
      ...options,
    ];
    const { ok, stdout, output } = run(helm(), words);
    return ok ? { name, manifests: stdout } : { name, problem: errorIn(output) };
  });
}

export async function checkChart(folder) {
  const chart = chartOf(folder);
  const problems = [];
  for (const { name, options } of [{ name: "values", options: LEAST }, ...examplesOf(chart)]) {
    const { ok, output } = run(helm(), ["lint", chart, "--strict", "--kube-version", KUBERNETES_VERSION, ...options]);
    if (!ok) problems.push(`lint ${name}: ${errorIn(output)}`);
  }
  const rendered = renderedExamples(folder);
  for (const { name, problem } of rendered) if (problem !== undefined) problems.push(`template ${name}: ${problem}`);
  return { problems, note: `${rendered.length} sets of values` };
}

function chartOf(folder) {
  return join(folder, "deploy", "helm", "warmpath");
}

function examplesOf(chart) {
  const examples = join(chart, "examples");
  if (!existsSync(examples)) return [];
  return readdirSync(examples).map((file) => ({
    name: basename(file, ".yaml"),
    options: ["--values", join(examples, file)],
  }));
}

/** Without the remarks about links, which are meant. */
function errorIn(output) {
  const lines = output.split("\n").filter((line) => line.trim() !== "" && !line.includes("found symbolic link"));
  const first = lines.findIndex((line) => /error/i.test(line));
  return lines.slice(Math.max(first, 0)).join(" ").trim();
}
