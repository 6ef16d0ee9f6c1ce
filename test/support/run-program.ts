import { spawn } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const REPOSITORY: string = fileURLToPath(new URL("../..", import.meta.url));

/** Less than a test may take, so that nothing outlives its test. */
const LONGEST_RUN_MS = 45_000;

export interface ProgramResult {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface ProgramOptions {
  readonly folder?: string;
  readonly stdin?: string;
  readonly environment?: Readonly<Record<string, string>>;
  /** For what takes longer than a usual test may. */
  readonly longestMs?: number;
}

/** Runs a program to its end and returns what it said; never throws for what the program did. */
export function runProgram(
  program: string,
  words: readonly string[],
  options: ProgramOptions = {},
): Promise<ProgramResult> {
  return new Promise((resolve, reject) => {
    const { NO_COLOR: _, FORCE_COLOR: __, WARMPATH_DEBUG: ___, ...inherited } = process.env;
    const child = spawn(program, words, {
      cwd: options.folder ?? REPOSITORY,
      env: { ...inherited, ...options.environment },
      stdio: "pipe",
      timeout: options.longestMs ?? LONGEST_RUN_MS,
    });
    let stdout = "";
    let stderr = "";
    child.stdout.on("data", (chunk: Buffer) => (stdout += chunk.toString()));
    child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
    child.on("error", reject);
    child.on("close", (status) => resolve({ status, stdout, stderr }));
    // A program that ends without reading its input is its own business.
    child.stdin.on("error", () => {});
    child.stdin.end(options.stdin ?? "");
  });
}

/** Runs a development tool of this repository, such as `oxlint`. */
export function runTool(name: string, words: readonly string[], options?: ProgramOptions): Promise<ProgramResult> {
  return runProgram(join(REPOSITORY, "node_modules", ".bin", name), words, options);
}

/** Runs the built command line as a user would. */
export function runWarmpath(words: readonly string[], options?: ProgramOptions): Promise<ProgramResult> {
  return runProgram(process.execPath, [join(REPOSITORY, "dist", "cli", "main.js"), ...words], options);
}
