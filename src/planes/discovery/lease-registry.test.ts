import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { request } from "undici";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { LeaseRegistry } from "./lease-registry.ts";
import type { DiscoveryListener } from "./types.ts";

describe("the registry of leases", () => {
  let registry: LeaseRegistry;
  let server: Server;
  let url: string;
  let heard: string[];
  let taken: Set<string>;

  beforeEach(async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    taken = new Set();
    registry = new LeaseRegistry({ isTaken: (name) => taken.has(name) });
    heard = [];
    const listener: DiscoveryListener = {
      appeared: ({ name }) => heard.push(`appeared ${name}`),
      changed: ({ name }) => heard.push(`changed ${name}`),
      left: (name) => heard.push(`left ${name}`),
    };
    await registry.watch(listener);
    server = createServer((incoming, response) => {
      if (!registry.handle(incoming, response)) response.writeHead(404).end("not mine");
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });

  afterEach(async () => {
    vi.useRealTimers();
    await registry.close();
    server.close();
    server.closeAllConnections();
  });

  async function call(method: "GET" | "POST" | "DELETE", path: string, body?: unknown): Promise<[number, unknown]> {
    const answer = await request(url + path, { method, ...(body !== undefined && { body: JSON.stringify(body) }) });
    const text = await answer.body.text();
    return [answer.statusCode, text.startsWith("{") ? JSON.parse(text) : text];
  }

  const description = { url: "http://10.0.0.1:8000/", model: "demo", kvBlocks: 4096, leaseSeconds: 10, newField: 1 };

  test("takes nobody in whose name no header can carry", async () => {
    const [status, body] = await call("POST", "/register", { ...description, name: "工人" });
    expect(status).toBe(400);
    expect(body).toEqual({ error: expect.stringMatching(/^name: must be of printable Latin-1 characters/) as string });
    expect(heard).toEqual([]);
  });

  test("takes a worker in, names it by its address, and ignores what it does not know", async () => {
    expect(await call("POST", "/register", description)).toEqual([200, { name: "10.0.0.1:8000", leaseSeconds: 10 }]);
    const known = {
      name: "10.0.0.1:8000",
      url: "http://10.0.0.1:8000",
      model: "demo",
      kvBlocks: 4096,
      leaseSeconds: 10,
    };
    expect(await call("GET", "/register")).toEqual([200, { workers: [known] }]);
    expect(heard).toEqual(["appeared 10.0.0.1:8000"]);
  });

  test("keeps a worker that renews and removes one that does not", async () => {
    await call("POST", "/register", description);
    vi.advanceTimersByTime(9000);
    await call("POST", "/register", description);
    vi.advanceTimersByTime(9999);
    expect(heard).toEqual(["appeared 10.0.0.1:8000"]);
    vi.advanceTimersByTime(1);
    expect(heard).toEqual(["appeared 10.0.0.1:8000", "left 10.0.0.1:8000"]);
    expect(await call("GET", "/register")).toEqual([200, { workers: [] }]);
  });

  test("lets a worker go at once when it says so", async () => {
    await call("POST", "/register", description);
    expect(await call("DELETE", "/register/10.0.0.1%3A8000")).toEqual([200, { name: "10.0.0.1:8000" }]);
    expect(heard.at(-1)).toBe("left 10.0.0.1:8000");
    expect((await call("DELETE", "/register/10.0.0.1%3A8000"))[0]).toBe(404);
    expect((await call("DELETE", "/register/%"))[0]).toBe(404);
  });

  test("gives nobody the name of a worker that does not announce itself", async () => {
    taken.add("static");
    const [status, body] = await call("POST", "/register", { ...description, name: "static" });
    expect([status, body]).toEqual([409, { error: expect.stringContaining("a worker named static") as string }]);
    expect((await call("DELETE", "/register/static"))[0]).toBe(404);
    expect(heard).toEqual([]);
  });

  test("says what is wrong with a description", async () => {
    const [, ranks] = await call("POST", "/register", { ...description, dpRanks: 1e9 });
    expect((ranks as { error: string }).error).toMatch(/^dpRanks: .*1024/);
    const wrong = { ...description, url: "ftp://x", kvBlocks: -1, leaseSeconds: 0 };
    const [status, answer] = await call("POST", "/register", wrong);
    expect(status).toBe(400);
    expect((answer as { error: string }).error).toMatch(/leaseSeconds: .*url: .*kvBlocks: /);
    expect((await call("POST", "/register", "x".repeat(70_000)))[0]).toBe(400);
    expect(heard).toEqual([]);
  });

  test("leaves other paths to others", async () => {
    expect(await call("GET", "/workers")).toEqual([404, "not mine"]);
    expect(await call("DELETE", "/register")).toEqual([404, "not mine"]);
  });

  test("goes on with the leases of another registry, which end unless they are renewed here", async () => {
    await call("POST", "/register", { name: "a", url: "http://a:1", leaseSeconds: 10 });
    const successor = new LeaseRegistry();
    const told: string[] = [];
    await successor.watch({
      appeared: ({ name }) => told.push(`appeared ${name}`),
      changed: () => {},
      left: (name) => told.push(`left ${name}`),
    });
    successor.takeOver(registry.leases);
    expect(told).toEqual(["appeared a"]);
    vi.advanceTimersByTime(10_000);
    expect(told).toEqual(["appeared a", "left a"]);
    await successor.close();
  });
});
