/** Answers that no HTTP server could give, but another carrier of them could bring. */
import { expect, onTestFinished, test } from "vitest";
import { createPolicy } from "../core/policy/registry.ts";
import { Router } from "../core/router.ts";
import type { AnswerController, AnswerHeaders, RequestPlane } from "../planes/request/types.ts";
import { InlineTokens } from "../planes/tokens/inline.ts";
import { WordTokenizer } from "../tokenizer/word-tokenizer.ts";
import { LocalDecider } from "./local-decider.ts";
import { Gateway } from "./server.ts";

/** The answer of a gateway whose worker gives this one, and what was made of it. */
async function answerTo(
  status: number,
  headers: AnswerHeaders,
  body: string,
): Promise<{ answer: Response; text: string; accounting: object }> {
  const controller: AnswerController = { pause: () => {}, resume: () => {}, abort: () => {} };
  const plane: RequestPlane = {
    get: () => ({
      dispatch: (_request, handler) => {
        handler.onRequestStart(controller, undefined);
        handler.onResponseStart(controller, status, headers);
        handler.onResponseData(controller, Buffer.from(body));
        handler.onResponseEnd(controller, {});
      },
    }),
    prune: () => {},
    close: () => Promise.resolve(),
  };
  const router = new Router(createPolicy("round-robin"), { blockTokens: 16, maxReplicas: 1, maxBlocks: 1024 });
  const decider = new LocalDecider({ router });
  decider.fleet.appeared({ name: "a", url: "http://127.0.0.1:1" });
  const tokens = new InlineTokens(new WordTokenizer(), "exact");
  const gateway = new Gateway({ decider, tokens, blockTokens: 16, requests: plane });
  onTestFinished(async () => {
    await gateway.close(0);
    await decider.close();
  });
  const asked = { method: "POST", body: JSON.stringify({ model: "m", prompt: "x" }) };
  const answer = await fetch(`${await gateway.listen()}/v1/completions`, asked);
  return { answer, text: await answer.text(), accounting: router.accounting };
}

test.each([0, 99, 1000, -1])("a status of %d is a failure of its worker", async (status) => {
  const { answer, text, accounting } = await answerTo(status, {}, "{}");
  expect([answer.status, text]).toEqual([502, expect.stringContaining(`its answer has the status ${status}`)]);
  expect(accounting).toMatchObject({ offered: 1, failed: 1, unfinished: 0 });
});

test("headers that cannot be written are left out, and the rest is passed on", async () => {
  const headers = { "content-type": "application/json", "x-request-id": "日本", "retry-after": "1\r\nx: y" };
  const { answer, text, accounting } = await answerTo(200, headers, '{"choices":[]}');
  expect([answer.status, text]).toEqual([200, '{"choices":[]}']);
  expect(["content-type", "x-request-id", "retry-after"].map((name) => answer.headers.get(name))).toEqual([
    "application/json",
    null,
    null,
  ]);
  expect(accounting).toMatchObject({ offered: 1, completed: 1 });
});
