import { once } from "node:events";
import { Agent, type IncomingMessage, createServer, get } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { ChunkWriter } from "./chunk-writer.ts";

/** Lengths of one to four digits, with every kind of digit in them. */
const TEXTS: readonly string[] = [
  "one ",
  ...[9, 15, 16, 0xab, 0xfff, 0x1000, 0xcde0].map((length) => "x".repeat(length)),
];

test("chunks written by hand are read like Node's own, and the connection can be used again without a trace", async () => {
  const listeners: number[] = [];
  const server = createServer((_request, response) => {
    listeners.push(response.socket?.listenerCount("drain") ?? -1);
    const writer = new ChunkWriter(response, () => {});
    for (const text of TEXTS) writer.write(Buffer.from(text));
    response.end("end");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const { port } = server.address() as AddressInfo;
  for (let i = 0; i < 3; i++) {
    const [reply] = (await once(get({ port, host: "127.0.0.1", agent }), "response")) as [IncomingMessage];
    let text = "";
    for await (const chunk of reply) text += String(chunk);
    expect(text).toBe(`${TEXTS.join("")}end`);
  }
  expect(new Set(listeners).size).toBe(1);
  agent.destroy();
  server.close();
});
