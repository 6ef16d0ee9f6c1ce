import type { ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";
import { Heard } from "../../support/heard.ts";

/** What a program says on its standard error from now on, line by line. */
export class LogLines {
  readonly #heard: Heard = new Heard();

  constructor({ stderr }: ChildProcess) {
    if (stderr !== null) createInterface(stderr).on("line", (line) => this.#heard.note(line));
  }

  get lines(): readonly string[] {
    return this.#heard.notes;
  }

  /** Resolves with all lines that match, once there are so many. */
  async matching(pattern: RegExp, count = 1): Promise<readonly string[]> {
    for (;;) {
      const found = this.lines.filter((line) => pattern.test(line));
      if (found.length >= count) return found;
      await this.#heard.next();
    }
  }
}
