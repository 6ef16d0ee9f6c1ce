/** What clients hear that are still sending when they are refused. */
import { once } from "node:events";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { expect, onTestFinished, test } from "vitest";
import { createPolicy } from "../core/policy/registry.ts";
import { Router } from "../core/router.ts";
import { InlineTokens } from "../planes/tokens/inline.ts";
import { WordTokenizer } from "../tokenizer/word-tokenizer.ts";
import { KeyRing } from "./access/key-ring.ts";
import type { GatewayLimits } from "./limits.ts";
import { LocalDecider } from "./local-decider.ts";
import { Gateway, type GatewayOptions } from "./server.ts";

/** More than two ends of a connection hold between them. */
const PIECE = "x".repeat(1024 * 1024);
const PIECES = 16;

async function gatewayWith(
  limits: Partial<GatewayLimits>,
  options: Partial<GatewayOptions> = {},
): Promise<{ port: number; decider: LocalDecider; gateway: Gateway }> {
  const router = new Router(createPolicy("round-robin"), { blockTokens: 16, maxReplicas: 1, maxBlocks: 1024 });
  const decider = new LocalDecider({ router });
  const tokens = new InlineTokens(new WordTokenizer(), "exact");
  const gateway = new Gateway({ decider, tokens, blockTokens: 16, limits, ...options });
  const url = await gateway.listen();
  onTestFinished(async () => {
    await gateway.close(0);
    await decider.close();
  });
  return { port: Number(new URL(url).port), decider, gateway };
}

/** Sends all of a request before it reads any of the answer, as simple clients do. */
async function sendThenRead(port: number, head: string, framing: "length" | "chunked" = "length"): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  const length = framing === "length" ? `content-length: ${PIECES * PIECE.length}` : "transfer-encoding: chunked";
  socket.write(`${head}host: x\r\n${length}\r\n\r\n`);
  for (let i = 0; i < PIECES; i++) {
    const piece = framing === "length" ? PIECE : `${PIECE.length.toString(16)}\r\n${PIECE}\r\n`;
    if (!socket.write(piece)) await once(socket, "drain");
  }
  if (framing === "chunked") socket.write("0\r\n\r\n");
  return await text(socket);
}

const POST = "POST /v1/completions HTTP/1.1\r\n";

test("a body that is too large is refused in words, whether it says so or not", async () => {
  const { port } = await gatewayWith({ maxBodyBytes: 1000 });
  expect(await sendThenRead(port, POST)).toMatch(/^HTTP\/1\.1 413 [^]*"body_too_large"/);
  expect(await sendThenRead(port, POST, "chunked")).toMatch(/^HTTP\/1\.1 413 [^]*"body_too_large"/);
});

test("a body that nobody wants is refused in words", async () => {
  const { port } = await gatewayWith({ maxStreams: 0 });
  expect(await sendThenRead(port, POST)).toMatch(/^HTTP\/1\.1 429 [^]*"too_many_streams"/);
  expect(await sendThenRead(port, "PUT /v1/completions HTTP/1.1\r\n")).toMatch(/^HTTP\/1\.1 405 /);
  expect(await sendThenRead(port, "POST /nowhere HTTP/1.1\r\n")).toMatch(/^HTTP\/1\.1 404 /);
  const closed = await gatewayWith({}, { keys: new KeyRing([]) });
  expect(await sendThenRead(closed.port, POST)).toMatch(/^HTTP\/1\.1 401 /);
});

test("what is not HTTP is refused in words, and once, however much there is of it", async () => {
  const { port, decider } = await gatewayWith({});
  expect(await sendThenRead(port, "GARBAGE\r\n")).toMatch(/^HTTP\/1\.1 400 [^]*"invalid_http"[^]*\}$/);
  expect(await sendThenRead(port, `${POST}x-long: ${"x".repeat(20_000)}\r\n`)).toMatch(/^HTTP\/1\.1 431 /);
  const metrics = await decider.metricsText();
  expect(metrics).toContain('requests_invalid_total{code="invalid_http"} 1');
  expect(metrics).toContain('requests_invalid_total{code="headers_too_large"} 1');
});
