import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";

/** Runs a measurement in a process of its own and returns the JSON it prints last. */
export function inFreshProcess(script: string, request: unknown): unknown {
  const file = fileURLToPath(new URL(script, import.meta.url));
  const flags = ["--expose-gc", "--import", "tsx", file, JSON.stringify(request)];
  const output = execFileSync(process.execPath, flags, { encoding: "utf8", maxBuffer: 1 << 26 });
  return JSON.parse(output.trim().split("\n").at(-1) ?? "null");
}

/** The best of several rounds with the median beside it: on a shared machine noise only ever makes things worse. */
export function bestAndMedian(values: readonly number[], best: "lowest" | "highest"): { best: number; median: number } {
  const sorted = [...values].sort((a, b) => a - b);
  return { best: best === "lowest" ? sorted[0] : sorted[sorted.length - 1], median: sorted[sorted.length >> 1] };
}
