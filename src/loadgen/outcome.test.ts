import { afterEach, describe, expect, test } from "vitest";
import {
  openStream,
  piece,
  type ScriptedEndpoint,
  type ScriptedRequest,
  startScriptedEndpoint,
  usage,
} from "../../test/support/scripted-endpoint.ts";
import { type RequestRecord, UNAVAILABLE } from "../core/request-record.ts";
import { conversationLoad } from "./conversation-load.ts";
import { startLoad } from "./start-load.ts";

let endpoint: ScriptedEndpoint | undefined;

afterEach(async () => endpoint?.close());

/** The record of one request that is answered like this. */
async function recordOf(answer: (request: ScriptedRequest) => void, url?: string): Promise<RequestRecord> {
  endpoint = await startScriptedEndpoint(answer);
  const load = conversationLoad({
    starters: [{ name: "a.md", text: "# A\n\nSome text." }],
    pace: { kind: "closed", concurrency: 1 },
    seed: 1,
    turns: [1, 1],
  });
  const record = await new Promise<RequestRecord>((resolve) => {
    const target = { url: url ?? endpoint?.url ?? "", model: "m" };
    const run = startLoad({
      target,
      ...load,
      onRecord: (first) => {
        resolve(first);
        void run.stop({ drainMs: 0 });
      },
    });
  });
  return record;
}

function refuse(status: number, error: object, headers: Readonly<Record<string, string>> = {}) {
  return ({ response }: ScriptedRequest): void => {
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify({ error }));
  };
}

describe("a request ends in exactly one account", () => {
  test("shed, with the router's reason", async () => {
    const details = { knob: "queueRequests", value: 9, threshold: 8, retryAfterMs: 250 };
    const error = { message: "the queue is full", code: "queue-full", type: "overloaded_error", details };
    const record = await recordOf(refuse(429, error));
    expect(record).toMatchObject({ account: "shed", failure: undefined, worker: undefined, outputTokens: 0 });
    expect(record.shedReason).toEqual({ code: "queue-full", message: "the queue is full", ...details });
  });

  test("shed by a gateway that has no room for another stream", async () => {
    const record = await recordOf(refuse(429, { message: "too many streams", code: "too_many_streams" }));
    expect(record).toMatchObject({ account: "shed", failure: { status: 429, message: "too many streams" } });
  });

  test.each([
    [400, "rejected"],
    [429, "rejected"],
    [503, "rejected"],
    [500, "failed"],
    [502, "failed"],
    [504, "timedOut"],
  ])("an answer of %i is %s, with what was said and by whom", async (status, account) => {
    const record = await recordOf(refuse(status, { message: "no" }, { "x-warmpath-worker": "w2" }));
    expect(record).toMatchObject({ account, failure: { status, message: "no" }, worker: "w2" });
  });

  test("an error that is no JSON is named by its status", async () => {
    const record = await recordOf(({ response }) => void response.writeHead(500).end("<html>"));
    expect(record).toMatchObject({ account: "failed", failure: { status: 500, message: "answered with 500" } });
  });

  test("failed, if a stream ends without its end mark", async () => {
    const record = await recordOf(({ response }) => {
      openStream(response);
      response.end(piece("half an ans"));
    });
    const failure = { status: 200, message: "the stream ended before its end mark" };
    expect(record).toMatchObject({ account: "failed", failure, outputTokens: 1, worker: UNAVAILABLE });
  });

  test.each([
    ["worker_failed", "failed"],
    ["worker_timed_out", "timedOut"],
  ])("an error %s inside the stream is %s", async (code, account) => {
    const record = await recordOf(({ response }) => {
      openStream(response);
      response.end(`${piece("half")}data: ${JSON.stringify({ error: { message: "it broke", code } })}\n\n`);
    });
    expect(record).toMatchObject({ account, failure: { status: 200, message: "it broke" } });
  });

  test("failed, if the connection breaks in the middle", async () => {
    const record = await recordOf(({ response }) => {
      openStream(response);
      response.write(piece("half"), () => response.destroy());
    });
    expect(record).toMatchObject({ account: "failed", failure: { status: 200 }, outputTokens: 1 });
  });

  test("failed, if nobody listens", async () => {
    const record = await recordOf(() => {}, "http://127.0.0.1:1");
    expect(record).toMatchObject({ account: "failed", sentNs: undefined, attempts: 0, worker: undefined });
    expect(record.failure?.message).toMatch(/ECONNREFUSED/);
  });

  test("completed, also where a server does not stream and tells no cached tokens", async () => {
    const record = await recordOf(({ response }) => {
      const told = { prompt_tokens: 5, completion_tokens: 2 };
      const choices = [{ index: 0, message: { role: "assistant", content: "Hello there." } }];
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ choices, usage: told }));
    });
    expect(record).toMatchObject({ account: "completed", promptTokens: 5, outputTokens: 2, worker: UNAVAILABLE });
    expect(record.observedCachedTokens).toBe(UNAVAILABLE);
  });

  test("TTFT is of the first content, not of the event that only opens the answer", async () => {
    const record = await recordOf(({ response }) => {
      openStream(response);
      response.write(piece(""), () => setImmediate(() => response.end(`${piece("x")}${usage(1, 1)}data: [DONE]\n\n`)));
    });
    expect(record).toMatchObject({ account: "completed", outputTokens: 1 });
    expect(record.firstContentNs).toBeGreaterThan(record.firstByteNs ?? Infinity);
  });
});
