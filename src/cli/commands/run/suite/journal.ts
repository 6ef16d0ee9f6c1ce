import { appendFileSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import type { ArmScore } from "../../../../lab/suite/score.ts";
import type { FinishedJob } from "./suite-job.ts";

/**
 * What has been finished, one line each, kept beside the tables: a run that was cut short goes on where it stopped, and a
 * job whose code or settings have changed has another key and runs again.
 */
export class Journal {
  readonly #path: string;
  readonly #known = new Map<string, FinishedJob["value"]>();

  constructor(path: string) {
    this.#path = path;
    mkdirSync(dirname(path), { recursive: true });
    if (!existsSync(path)) return;
    const written = readFileSync(path, "utf8");
    // What a crash has cut must not be joined by the next line.
    if (!written.endsWith("\n")) appendFileSync(path, "\n");
    for (const line of written.split("\n")) {
      const finished = parsed(line);
      if (finished !== undefined) this.#known.set(finished.key, finished.value);
    }
  }

  /** Round-robin's saturation, of a job that was to find it. */
  saturationRps(key: string): number | undefined {
    const value = this.#known.get(key);
    return typeof value === "number" ? value : undefined;
  }

  /** What an arm did, of a job that ran one. */
  score(key: string): ArmScore | undefined {
    const value = this.#known.get(key);
    return typeof value === "number" ? undefined : value;
  }

  has(key: string): boolean {
    return this.#known.has(key);
  }

  add(finished: FinishedJob): void {
    this.#known.set(finished.key, finished.value);
    appendFileSync(this.#path, `${JSON.stringify(finished)}\n`);
  }
}

/** A line that was cut is no line. */
function parsed(line: string): FinishedJob | undefined {
  try {
    return JSON.parse(line) as FinishedJob;
  } catch {
    return undefined;
  }
}
