import type { Account } from "../core/accounts.ts";
import type { ShedReason } from "../core/admission/types.ts";
import type { RequestFailure } from "../core/request-record.ts";
import { field } from "../wire/openai-usage.ts";

/** How a request ended, in its one account. */
export interface Outcome {
  readonly account: Exclude<Account, "cancelled">;
  readonly shedReason?: ShedReason;
  readonly failure?: RequestFailure;
}

export const COMPLETED: Outcome = { account: "completed" };
export const UNFINISHED: Outcome = { account: "unfinished" };

const LONGEST_MESSAGE = 200;

/** The outcome of an answer that is not 200. */
export function refusedOutcome(status: number, reply: unknown): Outcome {
  const error = field(reply, "error");
  const shedReason = shedReasonOf(error);
  if (shedReason !== undefined) return { account: "shed", shedReason };
  const said = field(error, "message") ?? field(reply, "message");
  const message = shortened(typeof said === "string" ? said : `answered with ${status}`);
  const failure = { status, message };
  // The gateway itself has no room for another stream.
  if (field(error, "code") === "too_many_streams") return { account: "shed", failure };
  if (status === 504) return { account: "timedOut", failure };
  return { account: status >= 500 && status !== 503 ? "failed" : "rejected", failure };
}

/** The outcome of a stream that ended with an error event, or without its end mark. */
export function brokenOutcome(errorEvent: unknown): Outcome {
  const error = field(errorEvent, "error");
  if (error === undefined) return failedOutcome("the stream ended before its end mark", 200);
  const said = field(error, "message");
  const failure = { status: 200, message: shortened(typeof said === "string" ? said : "an error in the stream") };
  return { account: field(error, "code") === "worker_timed_out" ? "timedOut" : "failed", failure };
}

/** The outcome of a connection that failed. */
export function failedOutcome(message: string, status?: number): Outcome {
  return { account: "failed", failure: { status, message: shortened(message) } };
}

/** The outcome of a request that the client gave up waiting for. */
export function timedOutOutcome(waitedMs: number): Outcome {
  const message = `no whole answer within ${waitedMs / 1000} s`;
  return { account: "timedOut", failure: { status: undefined, message } };
}

/** Why the router turned it away, where it was ours and says so. */
function shedReasonOf(error: unknown): ShedReason | undefined {
  const details = field(error, "details");
  const code = field(error, "code");
  const message = field(error, "message");
  const knob = field(details, "knob");
  if (typeof code !== "string" || typeof message !== "string" || typeof knob !== "string") return undefined;
  return {
    // A code of a later version is a text like the others here.
    code: code as ShedReason["code"],
    knob,
    value: numberOf(field(details, "value")),
    threshold: numberOf(field(details, "threshold")),
    retryAfterMs: numberOf(field(details, "retryAfterMs")),
    message,
  };
}

function numberOf(value: unknown): number {
  return typeof value === "number" ? value : 0;
}

function shortened(message: string): string {
  return message.length > LONGEST_MESSAGE ? `${message.slice(0, LONGEST_MESSAGE - 1)}…` : message;
}
