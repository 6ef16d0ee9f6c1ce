import type { Account } from "../../core/accounts.ts";
import { field } from "../openai-usage.ts";
import { numberIn, textIn } from "./metric.ts";

/** An error as AIPerf keeps it: HTTP status where there was one, a name, and what was said. */
export interface AiperfError {
  readonly code: number | undefined;
  readonly type: string | undefined;
  /** What was said; of a body that is JSON, its own message. */
  readonly message: string;
}

/** Statuses by which servers turn work away; 529 is Dynamo's. */
const REFUSING_STATUSES: ReadonlySet<number> = new Set([429, 503, 529]);
const OVERLOAD =
  /busy|overload|exhaust|capacity|too many|rate.?limit|throttl|queue|back.?pressure|retry later|no (free|available|eligible) (worker|instance|replica)/i;
const TIMED_OUT = /time.?d?.?out/i;
const CLIENT_CLOSED = 499;

/** Reads an error; undefined for null and for anything that is none. */
export function parseAiperfError(value: unknown): AiperfError | undefined {
  if (typeof value === "string") return { code: undefined, type: undefined, message: value };
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const message = textIn(value, "message") ?? textIn(value, "cause") ?? "";
  return { code: numberIn(value, "code"), type: textIn(value, "type"), message: innerMessage(message) };
}

/** Which account a failed request is in: turned away for overload, given up, or broken. */
export function accountOfError({ code, type, message }: AiperfError): Exclude<Account, "completed" | "unfinished"> {
  const said = `${type ?? ""} ${message}`;
  if (code !== undefined && REFUSING_STATUSES.has(code) && OVERLOAD.test(said)) return "shed";
  if (code === CLIENT_CLOSED || /cancel/i.test(type ?? "")) return "cancelled";
  if (code === 408 || code === 504 || TIMED_OUT.test(said)) return "timedOut";
  return "failed";
}

/** An error body is often JSON around one sentence; grouping and reading need the sentence. */
function innerMessage(message: string): string {
  if (!message.trimStart().startsWith("{")) return message;
  let body: unknown;
  try {
    body = JSON.parse(message);
  } catch {
    return message;
  }
  return textIn(body, "message") ?? textIn(field(body, "error"), "message") ?? textIn(body, "detail") ?? message;
}
