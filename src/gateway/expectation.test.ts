/** What clients expect before they send a body, and what they are told. */
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { expect, onTestFinished, test } from "vitest";
import { createPolicy } from "../core/policy/registry.ts";
import { Router } from "../core/router.ts";
import { InlineTokens } from "../planes/tokens/inline.ts";
import { WordTokenizer } from "../tokenizer/word-tokenizer.ts";
import { LocalDecider } from "./local-decider.ts";
import { scriptedWorker } from "./scripted-worker.test-support.ts";
import { Gateway } from "./server.ts";

const BODY = JSON.stringify({ model: "m", prompt: "hello" });

/** The lines with a status that come back for a request of this version with this expectation. */
async function statuses(version: string, expectation: string): Promise<string[]> {
  const worker = await scriptedWorker((_body, response) => response.end('{"choices":[{"text":"hi"}]}'));
  const router = new Router(createPolicy("round-robin"), { blockTokens: 16, maxReplicas: 1, maxBlocks: 1024 });
  const decider = new LocalDecider({ router });
  decider.fleet.appeared({ name: "e", url: worker.url });
  const gateway = new Gateway({ decider, tokens: new InlineTokens(new WordTokenizer(), "exact"), blockTokens: 16 });
  const { port } = new URL(await gateway.listen());
  onTestFinished(async () => {
    await gateway.close(0);
    await decider.close();
    worker.close();
  });
  const socket = connect(Number(port), "127.0.0.1");
  const headers = ["host: x", "connection: close", `expect: ${expectation}`, `content-length: ${BODY.length}`];
  socket.write(`POST /v1/completions HTTP/${version}\r\n${headers.join("\r\n")}\r\n\r\n${BODY}`);
  return [...(await text(socket)).matchAll(/^HTTP\/1\.1 (\d+)/gm)].map(([, status]) => status);
}

test.each([
  ["is told to go on", "1.1", "100-continue", ["100", "200"]],
  ["is told to go on, whatever else it expects", "1.1", "x, 100-Continue", ["100", "200"]],
  ["hears of nothing but its answer, if it is of a version that has no other", "1.0", "100-continue", ["200"]],
  ["is served, if nobody knows what it expects", "1.1", "the-unexpected", ["200"]],
])("a client %s: HTTP/%s, %s", async (_what, version, expectation, expected) => {
  expect(await statuses(version, expectation)).toEqual(expected);
});
