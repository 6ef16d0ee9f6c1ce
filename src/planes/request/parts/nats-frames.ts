/** What requests and answers look like on NATS; docs/reference/planes.md describes it. */

/** Last part of the subject that a piece of an answer comes under. */
export type AnswerKind = "head" | "data" | "end" | "error" | "beat";

/** What the first message of a request begins with; the body follows, in this message and in later ones. */
export interface RequestHead {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Length of the whole body. */
  readonly bytes: number;
}

export interface AnswerHead {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** `alive` is about all requests of one gateway, named by their common inbox; the others are about one request. */
export type ControlVerb = "pause" | "resume" | "abort" | "alive";

const CONTROL_VERBS: readonly string[] = ["pause", "resume", "abort", "alive"] satisfies ControlVerb[];
const LINE_FEED = 10;

/** The messages of a request, none larger than `partBytes`, in the order in which they go out; the head must fit into one. */
export function requestMessages(
  head: Omit<RequestHead, "bytes">,
  body: Uint8Array,
  partBytes: number,
): Uint8Array[] | undefined {
  const line = Buffer.from(`${JSON.stringify({ ...head, bytes: body.length })}\n`);
  return line.length > partBytes ? undefined : partsOf(Buffer.concat([line, body]), partBytes);
}

/** The head and the first part of the body; undefined if this is not how a request begins. */
export function readRequestHead(message: Uint8Array): { head: RequestHead; rest: Uint8Array } | undefined {
  const at = message.indexOf(LINE_FEED);
  const fields = at < 0 ? undefined : jsonObject(message.subarray(0, at));
  if (fields === undefined) return undefined;
  const { path, headers, bytes } = fields;
  if (typeof path !== "string" || !path.startsWith("/") || !Number.isSafeInteger(bytes)) return undefined;
  if (typeof headers !== "object" || headers === null) return undefined;
  if (Object.values(headers).some((value) => typeof value !== "string")) return undefined;
  const head = { path, headers: headers as Record<string, string>, bytes: bytes as number };
  return { head, rest: message.subarray(at + 1) };
}

export function writeAnswerHead(head: AnswerHead): string {
  return JSON.stringify(head);
}

export function readAnswerHead(message: Uint8Array): AnswerHead | undefined {
  const fields = jsonObject(message);
  const { status, headers } = fields ?? {};
  if (!Number.isSafeInteger(status) || typeof headers !== "object" || headers === null) return undefined;
  return { status: status as number, headers: headers as AnswerHead["headers"] };
}

export function writeControl(verb: ControlVerb, subject: string): string {
  return `${verb} ${subject}`;
}

export function readControl(text: string): { verb: ControlVerb; subject: string } | undefined {
  const [verb, subject, ...rest] = text.split(" ");
  if (!CONTROL_VERBS.includes(verb) || subject === undefined || rest.length > 0) return undefined;
  return { verb: verb as ControlVerb, subject };
}

/** Bytes in pieces that fit into a message; an empty lot is none. */
export function partsOf(bytes: Uint8Array, partBytes: number): Uint8Array[] {
  const parts: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += partBytes) parts.push(bytes.subarray(at, at + partBytes));
  return parts;
}

function jsonObject(bytes: Uint8Array): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(bytes));
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
