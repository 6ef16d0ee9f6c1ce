import { type Account, ACCOUNTS } from "../../core/accounts.ts";
import { WarmpathError } from "../../core/errors.ts";
import type { ShedReason } from "../../core/admission/types.ts";
import {
  type RequestFailure,
  type RequestRecord,
  type TokenTimes,
  UNAVAILABLE,
  type Unavailable,
} from "../../core/request-record.ts";
import type { DurationHistogram } from "../../measure/duration-histogram.ts";
import { gapCounts } from "../../measure/token-gaps.ts";

/**
 * What a line keeps of token times: `gaps` how often which gap occurred (enough for every table, a few dozen bytes),
 * `full` all of it, `none` nothing.
 */
export type TokenTimeDetail = "gaps" | "full" | "none";

/** One line of records.jsonl.gz: the record's own field names, what is undefined left out. */
export function encodeRecordLine(
  cell: string,
  record: RequestRecord,
  detail: TokenTimeDetail,
  scratch: DurationHistogram,
): string {
  return JSON.stringify({ cell, ...record, tokenTimes: encodeTokenTimes(record.tokenTimes, detail, scratch) });
}

/** A record and the cell it belongs to. */
export interface RecordOfCell {
  readonly cell: string;
  readonly record: RequestRecord;
}

/** Reads a line; throws WP_INVALID_INPUT that names the field. */
export function decodeRecordLine(line: string): RecordOfCell {
  const fields = new Fields(parseObject(line));
  return {
    cell: fields.text("cell"),
    record: {
      id: fields.text("id"),
      session: fields.optionalText("session"),
      turn: fields.number("turn"),
      intendedNs: fields.number("intendedNs"),
      sentNs: fields.optionalNumber("sentNs"),
      placedNs: fields.optionalNumber("placedNs"),
      firstByteNs: fields.optionalNumber("firstByteNs"),
      firstContentNs: fields.optionalNumber("firstContentNs"),
      lastContentNs: fields.optionalNumber("lastContentNs"),
      endNs: fields.optionalNumber("endNs"),
      promptTokens: fields.number("promptTokens"),
      outputTokens: fields.number("outputTokens"),
      predictedCachedTokens: fields.numberOrUnavailable("predictedCachedTokens"),
      observedCachedTokens: fields.numberOrUnavailable("observedCachedTokens"),
      worker: fields.optionalText("worker"),
      attempts: fields.number("attempts"),
      account: fields.account("account"),
      shedReason: decodeShedReason(fields.optionalObject("shedReason")),
      failure: decodeFailure(fields.optionalObject("failure")),
      decision: fields.optionalText("decision"),
      tokenTimes: decodeTokenTimes(fields.optionalObject("tokenTimes")),
    },
  };
}

function encodeTokenTimes(
  times: TokenTimes | undefined,
  detail: TokenTimeDetail,
  scratch: DurationHistogram,
): object | undefined {
  if (times === undefined || detail === "none") return undefined;
  if (detail === "full" && times.form === "runs") return { runs: [...times.runs] };
  if (detail === "full" && times.form === "chunks") return { timesNs: [...times.timesNs] };
  return { gaps: gapCounts(times, scratch) };
}

function decodeTokenTimes(value: Record<string, unknown> | undefined): TokenTimes | undefined {
  if (value === undefined) return undefined;
  const fields = new Fields(value, "tokenTimes.");
  if ("runs" in value) return { form: "runs", runs: Float64Array.from(fields.numbers("runs")) };
  if ("timesNs" in value) return { form: "chunks", timesNs: Float64Array.from(fields.numbers("timesNs")) };
  const gaps = new Fields(fields.object("gaps"), "tokenTimes.gaps.");
  return {
    form: "gaps",
    gaps: {
      bucketCounts: gaps.numbers("bucketCounts"),
      sumNs: gaps.number("sumNs"),
      minNs: gaps.number("minNs"),
      maxNs: gaps.number("maxNs"),
    },
  };
}

function decodeShedReason(value: Record<string, unknown> | undefined): ShedReason | undefined {
  if (value === undefined) return undefined;
  const fields = new Fields(value, "shedReason.");
  return {
    // A code of a later version is a text like the others here.
    code: fields.text("code") as ShedReason["code"],
    knob: fields.text("knob"),
    value: fields.number("value"),
    threshold: fields.number("threshold"),
    retryAfterMs: fields.number("retryAfterMs"),
    message: fields.text("message"),
  };
}

function decodeFailure(value: Record<string, unknown> | undefined): RequestFailure | undefined {
  if (value === undefined) return undefined;
  const fields = new Fields(value, "failure.");
  return { status: fields.optionalNumber("status"), message: fields.text("message") };
}

function parseObject(line: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (error) {
    throw new WarmpathError("WP_INVALID_INPUT", "is not complete JSON", { cause: error });
  }
  if (!isObject(value)) throw new WarmpathError("WP_INVALID_INPUT", "is not an object");
  return value;
}

/** Typed access to the fields of a line. By hand and not by a schema: a run may have a million lines. */
class Fields {
  readonly #object: Record<string, unknown>;
  readonly #within: string;

  constructor(object: Record<string, unknown>, within = "") {
    this.#object = object;
    this.#within = within;
  }

  optionalText(name: string): string | undefined {
    return this.#object[name] === undefined ? undefined : this.text(name);
  }

  optionalNumber(name: string): number | undefined {
    return this.#object[name] === undefined ? undefined : this.number(name);
  }

  optionalObject(name: string): Record<string, unknown> | undefined {
    return this.#object[name] === undefined ? undefined : this.object(name);
  }

  text(name: string): string {
    const value = this.#object[name];
    return typeof value === "string" ? value : this.#fail(name, "a text");
  }

  number(name: string): number {
    const value = this.#object[name];
    return typeof value === "number" ? value : this.#fail(name, "a number");
  }

  numberOrUnavailable(name: string): number | Unavailable {
    const value = this.#object[name];
    return typeof value === "number" || value === UNAVAILABLE ? value : this.#fail(name, 'a number or "unavailable"');
  }

  account(name: string): Account {
    const value = this.#object[name];
    return ACCOUNTS.find((account) => account === value) ?? this.#fail(name, `one of ${ACCOUNTS.join(", ")}`);
  }

  object(name: string): Record<string, unknown> {
    const value = this.#object[name];
    return isObject(value) ? value : this.#fail(name, "an object");
  }

  numbers(name: string): number[] {
    const value = this.#object[name];
    if (!Array.isArray(value)) return this.#fail(name, "a list of numbers");
    return value.every((one): one is number => typeof one === "number") ? value : this.#fail(name, "a list of numbers");
  }

  #fail(name: string, requirement: string): never {
    const value = this.#object[name];
    const problem =
      value === undefined ? "is missing" : `must be ${requirement}, got ${JSON.stringify(value).slice(0, 40)}`;
    throw new WarmpathError("WP_INVALID_INPUT", `${this.#within}${name} ${problem}`);
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
