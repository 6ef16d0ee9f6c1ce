import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { listenOnNextFree, nextFreePort } from "./next-free-port.ts";

const HOST = "127.0.0.1";

async function takenPort(): Promise<number> {
  const server = createServer().listen(0, HOST);
  onTestFinished(() => void server.close());
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

test("a port that is taken leads to a later one that is free", async () => {
  const taken = await takenPort();
  expect(await nextFreePort(taken, HOST, new Set())).toBeGreaterThan(taken);
});

test("ports that were given away before count as taken", async () => {
  const free = await nextFreePort(await takenPort(), HOST, new Set());
  expect(await nextFreePort(free, HOST, new Set([free, free + 1]))).toBeGreaterThan(free + 1);
});

test("an address that cannot be listened on at all is refused at once", async () => {
  const denied = Object.assign(new Error("denied"), { code: "EACCES" });
  await expect(listenOnNextFree(80, () => Promise.reject(denied))).rejects.toThrow("no port from 80 on");
});
