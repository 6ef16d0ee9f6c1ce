import type { RequestRecord } from "../../../core/request-record.ts";
import type { TokenTimeDetail } from "../../../lab/results/record-line.ts";
import { RecordsWriter } from "../../../lab/results/records-file.ts";

/** What lines of records.jsonl.gz name as their cell: a load is one. */
const CELL = "load";
const FLUSH_MS = 1000;

/** Writes records as they come, in batches and off the path of the streams that bring them. */
export class RecordsOutput {
  readonly #writer: RecordsWriter;
  readonly #timer: NodeJS.Timeout;
  #waiting: RequestRecord[] = [];
  #writing: Promise<void> = Promise.resolve();

  constructor(path: string, tokenTimes: TokenTimeDetail) {
    this.#writer = new RecordsWriter(path, { tokenTimes });
    this.#timer = setInterval(() => this.#flush(), FLUSH_MS);
    // Whoever closes it hears of a failure.
    this.#writing.catch(() => {});
  }

  add(record: RequestRecord): void {
    this.#waiting.push(record);
  }

  /** Resolves when all of it is on disk. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#flush();
    await this.#writing;
    await this.#writer.close();
  }

  #flush(): void {
    const records = this.#waiting;
    if (records.length === 0) return;
    this.#waiting = [];
    this.#writing = this.#writing.then(() => this.#writer.write(CELL, records));
    this.#writing.catch(() => {});
  }
}
