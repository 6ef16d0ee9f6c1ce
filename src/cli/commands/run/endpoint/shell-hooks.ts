import { spawn, spawnSync } from "node:child_process";
import { createInterface } from "node:readline";
import { WarmpathError } from "../../../../core/errors.ts";
import type { HookConfig } from "../../../../lab/experiment/types.ts";

export type HookName = keyof HookConfig;

export interface ShellHooksOptions {
  readonly hooks: HookConfig;
  /** Where commands are run: the folder of the experiment's file. */
  readonly folder: string;
  /** Told what hooks say, one line each. */
  readonly say: (line: string) => void;
}

/** Last lines of what a hook that failed has said. */
const LINES_KEPT = 3;

/** Commands of the experiment's file, run by the shell. */
export class ShellHooks {
  readonly #options: ShellHooksOptions;

  constructor(options: ShellHooksOptions) {
    this.#options = options;
  }

  has(name: HookName): boolean {
    return this.#options.hooks[name] !== undefined;
  }

  /**
   * Runs a hook and gives what it printed; undefined where there is none. A hook that fails is an error. It has a group of
   * its own, so that Ctrl-C does not reach it; the signal, where one is given, ends it with everything it has started.
   */
  async run(
    name: HookName,
    environment: Readonly<Record<string, string>>,
    signal?: AbortSignal,
  ): Promise<string | undefined> {
    const { hooks, folder, say } = this.#options;
    const command = hooks[name];
    if (command === undefined) return undefined;
    const isQuiet = name === "list_workers" || name === "describe_arm";
    const child = spawn("sh", ["-c", command], {
      cwd: folder,
      env: { ...process.env, ...environment },
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    const end = (): void => endGroup(child.pid);
    signal?.addEventListener("abort", end);
    const printed: string[] = [];
    const complaints: string[] = [];
    createInterface(child.stdout).on("line", (line) => {
      printed.push(line);
      if (!isQuiet) say(`${name}: ${line}`);
    });
    createInterface(child.stderr).on("line", (line) => {
      complaints.splice(0, Math.max(0, complaints.push(line) - LINES_KEPT));
      say(`${name}: ${line}`);
    });
    const how = await new Promise<string | undefined>((resolve) => {
      child.once("error", (error) => resolve(error.message));
      child.once("close", (code, by) => resolve(code === 0 ? undefined : `ended with ${by ?? code}`));
    });
    signal?.removeEventListener("abort", end);
    if (how === undefined || signal?.aborted === true) return printed.join("\n");
    const said = complaints.length === 0 ? "" : `: ${complaints.join(" ")}`;
    throw new WarmpathError("WP_INVALID_INPUT", `hook ${name} ${how}${said}`);
  }

  /** Runs a hook while the process ends, when nothing can be waited for any more. */
  runAtExit(name: HookName, environment: Readonly<Record<string, string>>): void {
    const { hooks, folder } = this.#options;
    const command = hooks[name];
    if (command === undefined) return;
    spawnSync("sh", ["-c", command], { cwd: folder, env: { ...process.env, ...environment }, stdio: "ignore" });
  }
}

function endGroup(leader: number | undefined): void {
  if (leader === undefined) return;
  try {
    process.kill(-leader, "SIGTERM");
  } catch {
    // It has ended in this very moment.
  }
}
