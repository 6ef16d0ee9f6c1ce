/** What clients can do to a gateway that others use: they are refused or cut off, and the others are served. */
import { once } from "node:events";
import { type Socket, connect } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { MODEL, ProgramFleet } from "./program-fleet.ts";

const IDLE_CONNECTIONS = 2000;
const AT_ONCE = 100;
const GIGABYTE = 1024 ** 3;
const PIECE = Buffer.alloc(1024 * 1024, "x");

let fleet: ProgramFleet;

beforeAll(async () => {
  fleet = await ProgramFleet.start({
    events: "http",
    gatewayFlags: ["--header-seconds", "2", "--request-seconds", "4", "--max-body-megabytes", "8"],
  });
});
afterAll(() => fleet.close());

async function connected(): Promise<Socket> {
  const socket = connect(Number(new URL(fleet.gateway.url).port), "127.0.0.1");
  socket.on("error", () => {});
  await once(socket, "connect");
  return socket;
}

/** However it comes about. */
function closeOf(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.once("close", () => resolve()));
}

/** Sends as much of a body as the gateway takes, and returns how much that was. */
async function sendGigabyte(framing: "content-length" | "chunked"): Promise<number> {
  const socket = await connected();
  const length = framing === "chunked" ? "transfer-encoding: chunked" : `content-length: ${GIGABYTE}`;
  socket.write(`POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n${length}\r\n\r\n`);
  socket.resume();
  const closed = closeOf(socket);
  const head = `${PIECE.length.toString(16)}\r\n`;
  let sent = 0;
  while (!socket.destroyed && !socket.readableEnded && sent < GIGABYTE) {
    if (framing === "chunked") socket.write(head);
    const isRoom = socket.write(PIECE);
    if (framing === "chunked") socket.write("\r\n");
    sent += PIECE.length;
    if (!isRoom)
      await Promise.race([once(socket, "drain"), closed, once(socket, "end")].map((one) => one.catch(() => {})));
  }
  socket.destroy();
  await closed;
  return sent;
}

/** Sends a header byte by byte until the gateway has had enough. */
async function dripHeaders(): Promise<"cut off"> {
  const socket = await connected();
  socket.resume();
  const closed = closeOf(socket).then(() => "cut off" as const);
  socket.write("POST /v1/completions HTTP/1.1\r\nhost: x\r\nx-slow: ");
  const drip = setInterval(() => socket.write("x"), 100);
  return await closed.finally(() => clearInterval(drip));
}

async function holdIdle(count: number): Promise<{ allClosed: Promise<unknown> }> {
  const closed: Promise<void>[] = [];
  while (closed.length < count) {
    // No more at once than the system lines up for a busy server: the rest would be connections of the client's own belief.
    const sockets = await Promise.all(Array.from({ length: AT_ONCE }, () => connected()));
    for (const socket of sockets) closed.push(closeOf(socket.resume()));
  }
  return { allClosed: Promise.all(closed) };
}

test("a huge body, dripped headers and idle connections end by themselves while another client is served", async () => {
  const idle = await holdIdle(IDLE_CONNECTIONS);
  const others = Array.from({ length: 40 }, (_, i) =>
    fleet.client.chat.completions.create({
      model: MODEL,
      messages: [{ role: "user", content: `question ${i}` }],
      max_tokens: 8,
    }),
  );
  const [declared, chunked, dripped] = await Promise.all([
    sendGigabyte("content-length"),
    sendGigabyte("chunked"),
    Promise.all(Array.from({ length: 20 }, () => dripHeaders())),
  ]);
  expect(declared).toBeLessThan(GIGABYTE / 4);
  expect(chunked).toBeLessThan(GIGABYTE / 4);
  expect(dripped.every((end) => end === "cut off")).toBe(true);
  const answers = await Promise.all(others);
  expect(answers.map(({ choices }) => choices[0].finish_reason)).toEqual(answers.map(() => "length"));
  await idle.allClosed;
  const metrics = await (await fetch(`${fleet.gateway.url}/metrics`)).text();
  const timedOut = /requests_invalid_total\{code="request_timed_out"\} (\d+)/.exec(metrics)?.[1];
  expect(Number(timedOut)).toBeGreaterThanOrEqual(IDLE_CONNECTIONS + 20);
  expect(metrics).toMatch(/requests_invalid_total\{code="body_too_large"\} 2/);
  expect(await fleet.admin("/admin/accounts")).toMatchObject({ offered: 40, completed: 40, unfinished: 0 });
});
