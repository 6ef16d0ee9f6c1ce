import type { IncomingMessage, ServerResponse } from "node:http";
import { collectBody, jsonOf } from "../wire/body.ts";
import { type ErrorFields, encodeError } from "../wire/openai-reply.ts";

/** Serves one method of one path; `query` is what follows the question mark. */
export type RouteHandler = (
  request: IncomingMessage,
  response: ServerResponse,
  query: URLSearchParams,
) => void | Promise<void>;

/** Handlers by method and path, such as `GET /health`. */
export type Routes = Readonly<Record<string, RouteHandler>>;

/** The cases in which a worker answers with an error; stable, for whoever stands in front to act on. */
export type WorkerErrorCode =
  | "invalid_json"
  | "invalid_request"
  | "context_length_exceeded"
  | "request_too_large"
  | "body_too_large"
  | "model_not_found"
  | "not_found"
  | "fault"
  | "queue_full"
  | "shutting_down";

const STATUS: Readonly<Record<WorkerErrorCode, number>> = {
  invalid_json: 400,
  invalid_request: 400,
  context_length_exceeded: 400,
  request_too_large: 400,
  body_too_large: 413,
  model_not_found: 404,
  not_found: 404,
  fault: 503,
  queue_full: 503,
  shutting_down: 503,
};

/** The status that goes with a code. */
export function statusOf(code: WorkerErrorCode): number {
  return STATUS[code];
}

/** An error of the worker in OpenAI's shape. */
export function errorFields(code: WorkerErrorCode, message: string, param?: string): ErrorFields {
  const type = STATUS[code] < 500 ? "invalid_request_error" : "server_error";
  return { message, type, code, ...(param !== undefined && { param }) };
}

/** Answers with an error. */
export function refuse(
  response: ServerResponse,
  code: WorkerErrorCode,
  message: string,
  more: { readonly param?: string | undefined; readonly status?: number } = {},
): void {
  respondJson(response, more.status ?? STATUS[code], encodeError(errorFields(code, message, more.param)));
}

/** Answers with a JSON body. */
export function respondJson(response: ServerResponse, status: number, body: string): void {
  response
    .writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(body) })
    .end(body);
}

/** The JSON of a request's body; undefined where the request has been refused for what it is. */
export async function readJson(
  request: IncomingMessage,
  response: ServerResponse,
  maxBytes: number,
): Promise<{ readonly value: unknown } | undefined> {
  const body = await collectBody(request.iterator({ destroyOnReturn: false }), maxBytes);
  if (body.isTooLarge) {
    // The rest of the body is not read, so the connection is of no use any more.
    response.setHeader("connection", "close");
    refuse(response, "body_too_large", `the body has more than ${maxBytes} bytes`);
    return undefined;
  }
  const value = jsonOf(body.bytes);
  if (value !== undefined) return { value };
  refuse(response, "invalid_json", "the body is not JSON");
  return undefined;
}
