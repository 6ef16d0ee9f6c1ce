import { once } from "node:events";
import { request } from "node:http";
import { type AddressInfo, type Socket, connect } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, expect, test } from "vitest";
import { DEFAULT_LIMITS, type GatewayLimits } from "./limits.ts";
import { createListener } from "./listener.ts";
import { readBody } from "./request-body.ts";

const opened: { close(): unknown }[] = [];

afterEach(() => {
  for (const one of opened.splice(0).toReversed()) one.close();
});

/** A listener that reads bodies and says how long they were; and what it turned away. */
async function listening(limits: Partial<GatewayLimits>): Promise<{ port: number; rejected: string[] }> {
  const rejected: string[] = [];
  const server = createListener({
    limits: { ...DEFAULT_LIMITS, ...limits },
    serve: (incoming, response) => {
      void readBody(incoming, 1000).then((read) => response.end(read.kind));
    },
    rejected: (code) => rejected.push(code),
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  opened.push({
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  });
  return { port: (server.address() as AddressInfo).port, rejected };
}

/** All that comes back on a connection, until it is closed, for what is sent on it. */
async function answerTo(port: number, sent: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  socket.write(sent);
  return await text(socket);
}

const POST = "POST / HTTP/1.1\r\nhost: x\r\n";

test.each([
  ["sends nothing at all", "", "headerMs"],
  ["stops inside its headers", `${POST}x-slow: `, "headerMs"],
  ["stops inside its body", `${POST}content-length: 100\r\n\r\nabc`, "requestMs"],
])("a client that %s is told so and let go", async (_what, sent, bound) => {
  const { port, rejected } = await listening({ headerMs: 50, requestMs: 50, [bound]: 60 });
  const answer = await answerTo(port, sent);
  expect(answer).toMatch(/^HTTP\/1\.1 408 /);
  expect(answer).toContain('"code":"request_timed_out"');
  expect(rejected).toEqual(["request_timed_out"]);
});

test("a connection without use is kept longer than clients keep theirs: theirs is the one that closes", async () => {
  const { port } = await listening({});
  const answer = await fetch(`http://127.0.0.1:${port}/`, { method: "POST", body: "x" });
  expect(answer.headers.get("keep-alive")).toBe("timeout=75");
});

test("headers without end and what is not HTTP are refused in OpenAI's shape", async () => {
  const { port, rejected } = await listening({});
  const long = await answerTo(port, `${POST}x-long: ${"x".repeat(20_000)}\r\n\r\n`);
  expect(long).toMatch(/^HTTP\/1\.1 431 [^]*"code":"headers_too_large"/);
  expect(await answerTo(port, "hello\r\n\r\n")).toMatch(/^HTTP\/1\.1 400 [^]*"code":"invalid_http"/);
  expect(rejected).toEqual(["headers_too_large", "invalid_http"]);
});

test("a client that leaves inside its request breaks no rule", async () => {
  const { port, rejected } = await listening({});
  const leaving = request({ port, method: "POST", headers: { "content-length": "10" } });
  leaving.on("error", () => {});
  leaving.write("abc");
  await once(leaving, "socket").then(([socket]) => once(socket as Socket, "connect"));
  leaving.destroy();
  expect(await answerTo(port, `${POST}connection: close\r\n\r\n`)).toMatch(/^HTTP\/1\.1 200 /);
  expect(rejected).toEqual([]);
});

test("one address has no more connections than it may, and may again when they are gone", async () => {
  const { port, rejected } = await listening({ maxConnectionsPerAddress: 1 });
  const first = connect(port, "127.0.0.1");
  await once(first, "connect");
  await expect(answerTo(port, POST)).resolves.toBe("");
  expect(rejected).toEqual(["too_many_connections"]);
  first.write(`${POST}connection: close\r\n\r\n`);
  expect(await text(first)).toMatch(/^HTTP\/1\.1 200 /);
  expect(await answerTo(port, `${POST}connection: close\r\n\r\n`)).toMatch(/^HTTP\/1\.1 200 /);
});
