import { createReadStream, createWriteStream } from "node:fs";
import { once } from "node:events";
import { pipeline } from "node:stream/promises";
import { createGunzip, createGzip, type Gzip } from "node:zlib";
import { WarmpathError } from "../../core/errors.ts";
import type { RequestRecord } from "../../core/request-record.ts";
import { DurationHistogram } from "../../measure/duration-histogram.ts";
import { decodeRecordLine, encodeRecordLine, type RecordOfCell, type TokenTimeDetail } from "./record-line.ts";

// Few large writes: each one is a job for the compressor's thread.
const BATCH_CHARACTERS = 1 << 18;
const READ_BYTES = 1 << 20;

/** Writes records.jsonl.gz as a stream: memory does not grow with the number of requests. */
export class RecordsWriter {
  readonly #gzip: Gzip;
  readonly #written: Promise<void>;
  readonly #detail: TokenTimeDetail;
  readonly #scratch: DurationHistogram = new DurationHistogram();
  #batch = "";

  constructor(path: string, options: { readonly tokenTimes?: TokenTimeDetail } = {}) {
    this.#detail = options.tokenTimes ?? "gaps";
    // Level 1 is several times as fast as the default, for a file that is a sixth larger.
    this.#gzip = createGzip({ level: 1 });
    this.#written = pipeline(this.#gzip, createWriteStream(path));
    // Whoever closes the writer hears of a failure; until then it must not count as unhandled.
    this.#written.catch(() => {});
  }

  /** Adds the records of a cell; resolves when there is room for more. */
  async write(cell: string, records: Iterable<RequestRecord>): Promise<void> {
    for (const record of records) {
      this.#batch += `${encodeRecordLine(cell, record, this.#detail, this.#scratch)}\n`;
      if (this.#batch.length >= BATCH_CHARACTERS) await this.#flush();
    }
  }

  /** Resolves when all of it is on disk. */
  async close(): Promise<void> {
    await this.#flush();
    this.#gzip.end();
    await this.#written;
  }

  async #flush(): Promise<void> {
    const batch = this.#batch;
    this.#batch = "";
    if (batch === "" || this.#gzip.write(batch)) return;
    // A disk that is full ends the pipeline, and no drain would ever come.
    await Promise.race([once(this.#gzip, "drain"), this.#written]);
  }
}

/** Joins the files of several cells: compressed members one after the other are one file. */
export async function joinRecordsFiles(parts: readonly string[], path: string): Promise<void> {
  await pipeline(async function* () {
    for (const part of parts) yield* createReadStream(part);
  }, createWriteStream(path));
}

/** Reads a records.jsonl.gz line by line; a malformed line is an error that names file and line. */
export async function* readRecords(path: string): AsyncGenerator<RecordOfCell, void, undefined> {
  let line = 0;
  for await (const text of readLines(path, () => line)) {
    line += 1;
    if (text === "") continue;
    try {
      yield decodeRecordLine(text);
    } catch (error) {
      if (!WarmpathError.isInstance(error)) throw error;
      throw new WarmpathError("WP_INVALID_INPUT", `${path}:${line}: ${error.message}`, { cause: error });
    }
  }
}

async function* readLines(path: string, linesRead: () => number): AsyncGenerator<string, void, undefined> {
  const source = createReadStream(path, { highWaterMark: READ_BYTES });
  const unzipped = createGunzip({ chunkSize: READ_BYTES });
  source.on("error", (error) => unzipped.destroy(error));
  unzipped.on("close", () => source.destroy());
  unzipped.setEncoding("utf8");
  let rest = "";
  try {
    for await (const chunk of source.pipe(unzipped) as AsyncIterable<string>) {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop() ?? "";
      yield* lines;
    }
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error);
    throw new WarmpathError("WP_INVALID_INPUT", `${path}: cannot be read after line ${linesRead()}: ${detail}`, {
      cause: error,
    });
  }
  if (rest !== "") yield rest;
}
