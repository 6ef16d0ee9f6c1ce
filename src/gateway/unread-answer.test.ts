import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { expect, onTestFinished, test, vi } from "vitest";
import { createPolicy } from "../core/policy/registry.ts";
import { Router } from "../core/router.ts";
import { InlineTokens } from "../planes/tokens/inline.ts";
import { WordTokenizer } from "../tokenizer/word-tokenizer.ts";
import { LocalDecider } from "./local-decider.ts";
import { Gateway } from "./server.ts";

/** More than any socket buffers. */
const ANSWER = Buffer.alloc(32 * 1024 * 1024, "x");

test("a client that does not fetch its whole answer is let go with it", async () => {
  const engine = createServer((_request, response) => void response.end(ANSWER)).listen(0, "127.0.0.1");
  await once(engine, "listening");
  const router = new Router(createPolicy("round-robin"), { blockTokens: 16, maxReplicas: 1, maxBlocks: 1024 });
  const decider = new LocalDecider({ router });
  decider.fleet.appeared({ name: "e", url: `http://127.0.0.1:${(engine.address() as AddressInfo).port}` });
  const tokens = new InlineTokens(new WordTokenizer(), "exact");
  const gateway = new Gateway({ decider, tokens, blockTokens: 16, limits: { clientStallMs: 300 } });
  const { port } = new URL(await gateway.listen());
  const client = connect(Number(port), "127.0.0.1");
  onTestFinished(async () => {
    client.destroy();
    await gateway.close(0);
    await decider.close();
    engine.close();
  });
  const body = JSON.stringify({ model: "m", prompt: "hello" });
  client.write(`POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
  await vi.waitFor(() => expect(router.accounting.completed).toBe(1), { timeout: 10_000 });
  expect(gateway.open).toBe(1);
  await vi.waitFor(() => expect(gateway.open).toBe(0), { timeout: 10_000 });
  client.on("error", () => {});
  let received = 0;
  client.on("data", (chunk) => (received += chunk.length));
  await new Promise((resolve) => client.once("close", resolve));
  expect(received).toBeLessThan(ANSWER.length);
});
