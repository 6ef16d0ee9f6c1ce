import { once } from "node:events";
import { type RequestListener, type ServerResponse, request } from "node:http";
import { type AddressInfo, type Socket, connect } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, expect, test, vi } from "vitest";
import { DEFAULT_LIMITS, type GatewayLimits } from "./limits.ts";
import { createListener } from "./listener.ts";
import { readBody } from "./request-body.ts";

const opened: { close(): unknown }[] = [];

afterEach(() => {
  for (const one of opened.splice(0).toReversed()) one.close();
});

/** Reads a body and says what became of that. */
const saysHowItWent: RequestListener = (incoming, response) => {
  void readBody(incoming, 1000).then((read) => response.end(read.kind));
};

/** A listener, and what it turned away; `connections` are those to it. */
async function listening(
  limits: Partial<GatewayLimits>,
  serve: RequestListener = saysHowItWent,
  connections: Socket[] = [],
): Promise<{ port: number; rejected: string[] }> {
  const rejected: string[] = [];
  const server = createListener({
    limits: { ...DEFAULT_LIMITS, ...limits },
    serve,
    rejected: (code) => rejected.push(code),
  });
  server.on("connection", (socket) => connections.push(socket));
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

function numbers(count: number): number[] {
  return [...Array(count).keys()];
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

test("a request without a host is refused in OpenAI's shape, if it is of a version that has one", async () => {
  const { port, rejected } = await listening({});
  expect(await answerTo(port, "POST / HTTP/1.1\r\n\r\n")).toMatch(/^HTTP\/1\.1 400 [^]*Host[^]*"code":"invalid_http"/);
  expect(rejected).toEqual(["invalid_http"]);
  expect(await answerTo(port, "POST / HTTP/1.0\r\n\r\n")).toMatch(/^HTTP\/1\.1 200 /);
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

test("a request that is late behind another does not cost that one its answer, and ends the connection after it", async () => {
  const { port, rejected } = await listening({ headerMs: 50, requestMs: 50 }, (_request, response) => {
    response.write("first ");
    const isLate = (): void => expect(rejected).toEqual(["request_timed_out"]);
    void vi.waitFor(isLate, { timeout: 10_000 }).then(() => response.end("last"));
  });
  const answer = await answerTo(port, `${POST}\r\n${POST}content-length: 100\r\n\r\nabc`);
  expect(answer).toMatch(/^HTTP\/1\.1 200 [^]*first [^]*last\r\n0\r\n\r\n$/);
});

test("requests sent ahead are served one at a time and in order, however many there are", async () => {
  const count = 5000;
  let open = 0;
  let served = 0;
  const { port } = await listening({}, ({ url }, response) => {
    expect(++open).toBe(1);
    response.on("close", () => open--);
    if (++served === count) response.setHeader("connection", "close");
    setImmediate(() => response.end(`<${url}>`));
  });
  const answer = await answerTo(
    port,
    numbers(count)
      .map((i) => `GET /${i} HTTP/1.1\r\nhost: x\r\n\r\n`)
      .join(""),
  );
  expect(answer.match(/<[^>]*>/g)).toEqual(numbers(count).map((i) => `</${i}>`));
});

test("requests sent ahead with bodies that fill all buffers are read in their turn", async () => {
  const body = "x".repeat(300_000);
  const { port } = await listening({}, (incoming, response) => {
    if (incoming.url === "/4") response.setHeader("connection", "close");
    void readBody(incoming, 1e6).then((read) =>
      response.end(read.kind === "read" ? `<${read.bytes.length}>` : read.kind),
    );
  });
  const post = (i: number): string => `POST /${i} HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
  const answer = await answerTo(port, numbers(5).map(post).join(""));
  expect(answer.match(/<[^>]*>/g)).toEqual(numbers(5).map(() => "<300000>"));
});

test("of a connection with many requests sent ahead no more is read until there is room", async () => {
  const connections: Socket[] = [];
  let first: ServerResponse | undefined;
  const { port } = await listening(
    {},
    (_request, response) => {
      if (first === undefined) first = response;
      else if (response.req.url === "/last") response.setHeader("connection", "close").end();
      else response.end();
    },
    connections,
  );
  const answer = answerTo(
    port,
    "GET / HTTP/1.1\r\nhost: x\r\n\r\n".repeat(20_000) + "GET /last HTTP/1.1\r\nhost: x\r\n\r\n",
  );
  await vi.waitFor(() => expect(connections[0]?.isPaused()).toBe(true));
  first?.end();
  expect((await answer).match(/^HTTP\/1\.1 200 /gm)).toHaveLength(20_001);
});

test("an answer that is written to after its end takes nobody with it", async () => {
  const { port } = await listening({}, (_request, response) => {
    response.setHeader("connection", "close");
    response.end("whole");
    response.write("and more");
  });
  expect(await answerTo(port, `${POST}\r\n`)).toContain("whole");
  expect(await answerTo(port, `${POST}\r\n`)).toContain("whole");
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
