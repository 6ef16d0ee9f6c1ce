import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { WarmpathError } from "../../../core/errors.ts";
import { processFile } from "../gateway/process-roles.ts";

/** How long a process may take to end after it was asked. */
const PATIENCE_MS = 4000;
/** Complaints of a process that did not start; the last ones tell why. */
const LINES_KEPT = 5;

export interface DemoProcessEvents {
  /** A line on its standard error, while it serves. */
  readonly said: (line: string) => void;
  /** It ended, whether it was asked to or not. */
  readonly ended: () => void;
}

/** One process of the demo. It has a group of its own, so that Ctrl-C reaches only the one that can end all in order. */
export class DemoProcess {
  /** What it printed when it began to serve. */
  readonly announcement: Readonly<Record<string, unknown>>;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, announcement: Readonly<Record<string, unknown>>) {
    this.#child = child;
    this.announcement = announcement;
  }

  /** Starts a command that announces itself with one line of JSON; rejects with its complaint if it ends before that. */
  static async start(words: readonly string[], events: DemoProcessEvents): Promise<DemoProcess> {
    const child = fork(processFile(new URL("./member-process.ts", import.meta.url)), words, {
      silent: true,
      detached: true,
    });
    const complaints: string[] = [];
    let isServing = false;
    if (child.stderr !== null) {
      createInterface(child.stderr).on("line", (line) => {
        if (isServing) events.said(line);
        else complaints.splice(0, Math.max(0, complaints.push(line) - LINES_KEPT));
      });
    }
    const announcement = await new Promise<Readonly<Record<string, unknown>>>((resolve, reject) => {
      if (child.stdout !== null) {
        createInterface(child.stdout).once("line", (line) => {
          isServing = true;
          resolve(JSON.parse(line) as Readonly<Record<string, unknown>>);
        });
      }
      child.once("error", reject);
      child.once("exit", () => {
        const message = complaints.at(-1) ?? `warmpath ${words[0]} ended before it served`;
        reject(new WarmpathError("WP_INVALID_INPUT", message));
      });
    });
    child.once("exit", events.ended);
    return new DemoProcess(child, announcement);
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Asks it to end, and insists after a while. */
  async stop(): Promise<void> {
    if (!this.isRunning) return;
    const exit = once(this.#child, "exit");
    this.#child.kill("SIGTERM");
    const insist = setTimeout(() => this.#child.kill("SIGKILL"), PATIENCE_MS);
    await exit;
    clearTimeout(insist);
  }

  /** Ends it at once, as a crash would. */
  async kill(): Promise<void> {
    if (!this.isRunning) return;
    const exit = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await exit;
  }
}
