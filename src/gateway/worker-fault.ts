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

/** What a connection failed by: the way to all workers is down, this one could not be reached, or it was lost on the way. */
export function connectionFault(error: Error): AttemptFault {
  const { code } = error as NodeJS.ErrnoException;
  if (code === "ENETDOWN") return "network-down";
  return code !== undefined && CONNECT_CODES.has(code) ? "connect" : "reset";
}

/** A deadline that passed, in words. */
export function describeFault(fault: AttemptFault, allowedMs: number): string {
  const waited = `${(allowedMs / 1000).toFixed(0)} s`;
  if (fault === "gap-timeout") return `the worker sent nothing for ${waited}`;
  return `the worker sent no answer within ${waited}`;
}
