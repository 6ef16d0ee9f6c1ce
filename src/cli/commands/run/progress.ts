/** Shows how far a run is on one line that is written over, on a terminal only. */
export class Progress {
  readonly #write: (text: string) => void;
  readonly #total: number;
  readonly #noun: string;
  readonly #startedMs: number = performance.now();
  #done = 0;

  constructor(total: number, write: (text: string) => void, noun = "cells") {
    this.#total = total;
    this.#noun = noun;
    this.#write = write;
  }

  finished(cell: string): void {
    this.#done += 1;
    const seconds = (performance.now() - this.#startedMs) / 1000;
    const left = (seconds / this.#done) * (this.#total - this.#done);
    this.#write(`\r\u001b[K${this.#done} of ${this.#total} ${this.#noun}, ${left.toFixed(0)} s left (${cell})`);
  }

  end(): void {
    this.#write("\r\u001b[K");
  }
}

/** Writes to the terminal on stderr, or nowhere if there is none. */
export function progressWriter(): (text: string) => void {
  return process.stderr.isTTY ? (text) => void process.stderr.write(text) : () => {};
}
