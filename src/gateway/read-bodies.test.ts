import { once } from "node:events";
import { type AddressInfo, type Socket, connect, createServer } from "node:net";
import { afterEach, expect, test } from "vitest";
import type { AnswerController, AnswerHandler, Upstream } from "../planes/request/types.ts";
import { ReadBodies } from "./read-bodies.ts";
import { scriptedWorker } from "./scripted-worker.test-support.ts";
import { Upstreams } from "./upstreams.ts";

const open: { close(): unknown }[] = [];

afterEach(async () => {
  for (const each of open.splice(0).toReversed()) await each.close();
});

/** More than a connection takes in while its other end does not read. */
const MUCH = 32 * 1024 * 1024;

async function deafServer(): Promise<{ port: number; connected: Promise<Socket[]> }> {
  const server = createServer({ pauseOnConnect: true });
  const connected = once(server, "connection") as Promise<Socket[]>;
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  open.push({ close: () => server.close() });
  return { port: (server.address() as AddressInfo).port, connected };
}

test("a body is read when its connection has taken it in, and not before", async () => {
  const { port, connected } = await deafServer();
  const socket = connect(port, "127.0.0.1");
  open.push({ close: () => socket.destroy() });
  const bodies = new ReadBodies();
  bodies.watch(socket);
  const [other] = await connected;
  const read: string[] = [];
  const all = new Promise<void>((resolve) => {
    socket.write(bodies.expected(new Uint8Array(MUCH), () => read.push("long")));
    socket.write(bodies.expected(new Uint8Array(1), () => read.push("short") && resolve()));
  });
  // As much as fits has gone by the time that the other end hears of something later.
  socket.write("end");
  expect(socket.writableLength).toBeGreaterThan(0);
  expect(read).toEqual([]);
  other.resume();
  await all;
  expect(read).toEqual(["long", "short"]);
});

/** Sends a body, and says when it is read and how the request ended. */
function send(
  upstream: Upstream,
  body: Uint8Array,
  started: (controller: AnswerController) => void,
): Promise<string[]> {
  const heard: string[] = [];
  return new Promise((resolve) => {
    const note = (what: string): void => {
      heard.push(what);
      if (heard.length === 2) resolve(heard);
    };
    const handler: AnswerHandler = {
      onRequestStart: started,
      onResponseStart: () => {},
      onResponseData: () => {},
      onResponseEnd: () => note("answered"),
      onResponseError: () => note("failed"),
    };
    upstream.dispatch({ method: "POST", path: "/", headers: {}, body, bodyRead: () => note("read") }, handler);
  });
}

test("a worker that reads has read its body, and so has one whose connection was given up", async () => {
  const upstreams = new Upstreams({ connectMs: 1000 });
  open.push(upstreams);
  const worker = await scriptedWorker((_body, response) => response.end("yes"));
  open.push(worker);
  const body = new Uint8Array(1000);
  expect(await send(upstreams.get(worker.url), body, () => {})).toEqual(["read", "answered"]);

  const { port } = await deafServer();
  const abort = (controller: AnswerController): void => {
    // When the body has been handed to the connection, which cannot take all of it.
    setImmediate(() => controller.abort(new Error("given up")));
  };
  const deaf = await send(upstreams.get(`http://127.0.0.1:${port}`), new Uint8Array(MUCH), abort);
  expect(deaf).toEqual(["failed", "read"]);
});
