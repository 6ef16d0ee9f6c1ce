import type { AttemptFault } from "./decider.ts";

/** Codes of failures to reach a worker at all, as Node and undici have them. */
const CONNECT_CODES: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "EAI_AGAIN",
  "ETIMEDOUT",
  "UND_ERR_CONNECT_TIMEOUT",
]);

/** Codes of answers that cannot be read. Whoever gives them is there. */
const ANSWER_CODES: ReadonlySet<string> = new Set([
  "EPROTO",
  "UND_ERR_HEADERS_OVERFLOW",
  "UND_ERR_RES_CONTENT_LENGTH_MISMATCH",
  "UND_ERR_RES_EXCEEDED_MAX_SIZE",
]);

/** An answer that goes beyond what is held of any; another worker would give the same. */
export class AnswerTooLong extends Error {}

/**
 * What an attempt failed by: the way to all workers is down, this one could not be reached, or it was lost on the way; or it is
 * there, and what it answers is no answer.
 */
export function connectionFault(error: Error): AttemptFault {
  if (error instanceof AnswerTooLong) return "stream-error";
  const { code = "" } = error as NodeJS.ErrnoException;
  if (code === "ENETDOWN") return "network-down";
  if (CONNECT_CODES.has(code)) return "connect";
  return code.startsWith("HPE_") || ANSWER_CODES.has(code) ? "stream-error" : "reset";
}

/** A deadline that passed, in words. */
export function describeFault(fault: AttemptFault, allowedMs: number): string {
  const waited = `${(allowedMs / 1000).toFixed(0)} s`;
  if (fault === "gap-timeout") return `the worker sent nothing for ${waited}`;
  return `the worker sent no answer within ${waited}`;
}
