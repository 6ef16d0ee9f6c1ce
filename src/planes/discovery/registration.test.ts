import { EventEmitter, on, once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { Registration } from "./registration.ts";

test("a registration renews, takes up again after a failure that it tells of once, and gives the lease back", async () => {
  const calls = new EventEmitter();
  const statuses = [200, 500, 500];
  const server = createServer((incoming, response) => {
    incoming.resume();
    response.writeHead(statuses.shift() ?? 200).end("{}");
    calls.emit("call", `${incoming.method} ${incoming.url}`);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const registryUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const problems: string[] = [];
  const registration = new Registration({
    registryUrl,
    worker: { name: "a b", url: "http://10.0.0.1" },
    leaseSeconds: 0.6,
    problem: (message) => problems.push(message),
  });
  const heard: string[] = [];
  const listening = on(calls, "call");
  expect(await registration.start()).toBe(true);
  for await (const [call] of listening) if (heard.push(call as string) === 5) break;
  expect(heard).toEqual(Array<string>(5).fill("POST /register"));
  const last = once(calls, "call");
  await registration.close();
  expect(await last).toEqual(["DELETE /register/a%20b"]);
  expect(problems).toEqual([`POST ${registryUrl}register was answered with 500: {}`]);
  server.close();
  server.closeAllConnections();
});

test("a registration that finds no registry says so and goes on trying", async () => {
  const problems: string[] = [];
  const registration = new Registration({
    registryUrl: "http://127.0.0.1:1",
    worker: { name: "a", url: "http://10.0.0.1" },
    leaseSeconds: 60,
    problem: (message) => problems.push(message),
  });
  expect(await registration.start()).toBe(false);
  expect(problems).toEqual([expect.stringContaining("POST http://127.0.0.1:1/register: ")]);
  await registration.close();
});
