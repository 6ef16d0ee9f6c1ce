import type { ServerResponse } from "node:http";
import type { ShedReason } from "../core/admission/types.ts";
import { type ErrorFields, encodeError } from "../wire/openai-reply.ts";

/** The cases in which the gateway itself answers with an error; stable, for clients to act on. */
export type GatewayErrorCode =
  | "invalid_json"
  | "invalid_request"
  | "invalid_http"
  | "invalid_api_key"
  | "invalid_admin_token"
  | "request_timed_out"
  | "body_too_large"
  | "headers_too_large"
  | "not_found"
  | "model_not_found"
  | "method_not_allowed"
  | "too_many_streams"
  | "worker_failed"
  | "worker_timed_out"
  | "internal_error"
  | "shutting_down";

const STATUS: Readonly<Record<GatewayErrorCode, number>> = {
  invalid_json: 400,
  invalid_request: 400,
  invalid_http: 400,
  invalid_api_key: 401,
  invalid_admin_token: 401,
  request_timed_out: 408,
  body_too_large: 413,
  headers_too_large: 431,
  not_found: 404,
  model_not_found: 404,
  method_not_allowed: 405,
  too_many_streams: 429,
  worker_failed: 502,
  worker_timed_out: 504,
  internal_error: 500,
  shutting_down: 503,
};

export function statusOf(code: GatewayErrorCode): number {
  return STATUS[code];
}

/** The fields of an error of ours. */
export function errorFields(code: GatewayErrorCode, message: string, param?: string): ErrorFields {
  const status = STATUS[code];
  const type = status === 429 ? "overloaded_error" : status < 500 ? "invalid_request_error" : "server_error";
  return { message, type, code, ...(param !== undefined && { param }) };
}

/** Answers with an error of ours in OpenAI's shape. */
export function respondWithError(
  response: ServerResponse,
  code: GatewayErrorCode,
  message: string,
  param?: string,
): void {
  respondJson(response, STATUS[code], encodeError(errorFields(code, message, param)));
}

/** Answers a request for something that is served by these methods and no other. */
export function respondWithAllowed(response: ServerResponse, path: string, methods: readonly string[]): void {
  response.setHeader("allow", methods.join(", "));
  respondWithError(response, "method_not_allowed", `${path} takes ${methods.join(" and ")}`);
}

/** Answers a request that the router turned away: 503 if nobody may take it, else 429; both say when to come again. */
export function respondWithShed(response: ServerResponse, reason: ShedReason): void {
  setRetryAfter(response, reason.retryAfterMs);
  respondJson(response, reason.code === "no-eligible-worker" ? 503 : 429, encodeError(shedFields(reason)));
}

/** The fields of the error that a request is turned away with. */
export function shedFields({ code, knob, value, threshold, retryAfterMs, message }: ShedReason): ErrorFields {
  const isUnavailable = code === "no-eligible-worker";
  const type = isUnavailable ? "server_error" : code.startsWith("key_") ? "rate_limit_error" : "overloaded_error";
  return { message, type, code, details: { knob, value, threshold, retryAfterMs } };
}

/** Says when to come again, in whole seconds as HTTP has it and in milliseconds as OpenAI's clients read it. */
export function setRetryAfter(response: ServerResponse, retryAfterMs: number): void {
  response.setHeader("retry-after", String(Math.max(1, Math.ceil(retryAfterMs / 1000))));
  response.setHeader("retry-after-ms", String(Math.ceil(retryAfterMs)));
}

/** Answers with a JSON body. */
export function respondJson(response: ServerResponse, status: number, body: string): void {
  response
    .writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(body) })
    .end(body);
}
