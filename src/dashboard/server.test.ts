import { once } from "node:events";
import { type IncomingMessage, request as send } from "node:http";
import { describe, expect, onTestFinished, test } from "vitest";
import { LiveFeed } from "./feed.ts";
import { COMMAND_PATH, FEED_PATH, type Hello, type Snapshot } from "./protocol.ts";
import { DashboardServer } from "./server.ts";
import { fakeLoad, IDENTITY } from "./test-doubles.ts";

const FILES = new Map([
  ["/", { bytes: Buffer.from("<p>page</p>"), type: "text/html; charset=utf-8", isImmutable: false }],
  ["/assets/a.js", { bytes: Buffer.from("1"), type: "text/javascript; charset=utf-8", isImmutable: true }],
]);

async function serve() {
  const load = fakeLoad();
  const feed = new LiveFeed({
    identity: IDENTITY,
    load,
    slo: { ttftMs: 600 },
    baselines: { sources: [], arms: [] },
    now: () => Date.now(),
  });
  const server = new DashboardServer({ feed, files: FILES, intervalMs: 5 });
  const url = await server.listen();
  onTestFinished(() => server.close());
  const command = (body: unknown, headers: Record<string, string> = {}): Promise<Response> =>
    fetch(url + COMMAND_PATH, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: typeof body === "string" ? body : JSON.stringify(body),
    });
  return { url, load, command };
}

/** Reads events until there are so many. */
async function events(url: string, count: number): Promise<{ name: string; data: unknown }[]> {
  const response = await fetch(url + FEED_PATH);
  const found: { name: string; data: unknown }[] = [];
  let text = "";
  for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    const whole = text.split("\n\n");
    text = whole.pop() ?? "";
    for (const one of whole) {
      const [, name, data] = /^event: (.+)\ndata: (.+)$/s.exec(one) ?? [];
      if (name !== undefined) found.push({ name, data: JSON.parse(data) });
    }
    if (found.length >= count) break;
  }
  return found;
}

describe("the page's server", () => {
  test("greets whoever connects, then says everything again and again", async () => {
    const { url } = await serve();
    const [hello, first, second] = await events(url, 3);
    expect(hello).toMatchObject({
      name: "hello",
      data: { serverId: "server", slo: { ttftMs: 600 } } satisfies Partial<Hello>,
    });
    expect([first.name, second.name]).toEqual(["snapshot", "snapshot"]);
    expect((second.data as Snapshot).atMs).toBeGreaterThanOrEqual((first.data as Snapshot).atMs);
  });

  test("serves the files of the page and nothing else, and lets nothing be loaded from elsewhere", async () => {
    const { url } = await serve();
    const page = await fetch(url);
    expect(await page.text()).toBe("<p>page</p>");
    expect(page.headers.get("content-security-policy")).toContain("default-src 'self'");
    expect((await fetch(`${url}/assets/a.js`)).headers.get("cache-control")).toContain("immutable");
    for (const path of ["/missing", "/../package.json", "/%2e%2e/package.json"]) {
      expect((await fetch(url + path)).status).toBe(404);
    }
  });

  test("carries out a command", async () => {
    const { load, command } = await serve();
    const response = await command({ kind: "set-concurrency", concurrency: 60 });
    expect([response.status, await response.json()]).toEqual([200, { ok: true }]);
    expect(load.calls).toEqual(["concurrency 60"]);
  });

  test.each([
    [{ kind: "set-concurrency", concurrency: 301 }, 400],
    [{ kind: "set-concurrency", concurrency: 1.5 }, 400],
    [{ kind: "explode" }, 400],
    ["not json", 400],
    [{ kind: "reset-caches" }, 409],
  ])("refuses %o with %i and says why", async (body, status) => {
    const { load, command } = await serve();
    const response = await command(body);
    expect(response.status).toBe(status);
    expect(await response.json()).toEqual({ ok: false, message: expect.stringMatching(/\w/) });
    expect(load.calls).toEqual([]);
  });

  test("shows and does nothing under a name that somebody else made point here", async () => {
    const { url, load } = await serve();
    const { port, hostname } = new URL(url);
    const asked = async (method: string, path: string): Promise<number | undefined> => {
      const headers = { host: `evil.example:${port}`, origin: `http://evil.example:${port}` };
      const sent = send({ method, hostname, port, path, headers: { ...headers, "content-type": "application/json" } });
      sent.end(method === "POST" ? '{"kind":"stop"}' : undefined);
      const [response] = (await once(sent, "response")) as [IncomingMessage];
      response.resume();
      return response.statusCode;
    };
    expect([await asked("POST", COMMAND_PATH), await asked("GET", "/"), await asked("GET", FEED_PATH)]).toEqual([
      403, 403, 403,
    ]);
    expect(load.calls).toEqual([]);
  });

  test("takes no command from the page of somebody else", async () => {
    const { load, command } = await serve();
    expect((await command({ kind: "stop" }, { origin: "http://elsewhere.example" })).status).toBe(403);
    expect((await command({ kind: "stop" }, { "sec-fetch-site": "cross-site" })).status).toBe(403);
    expect((await command('{"kind":"stop"}', { "content-type": "text/plain" })).status).toBe(403);
    expect(load.calls).toEqual([]);
  });
});
