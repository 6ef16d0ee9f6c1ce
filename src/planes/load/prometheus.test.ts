import { once } from "node:events";
import { type ServerResponse, createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { ReportedLoad } from "../../core/load/load-description.ts";
import { PrometheusLoad } from "./prometheus.ts";

let server: Server;
let url: string;
let plane: PrometheusLoad;
let answer: { status: number; text: string };

beforeEach(async () => {
  server = createServer((request, response) => {
    response.writeHead(request.url === "/metrics" ? answer.status : 404).end(answer.text);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  plane = new PrometheusLoad({ intervalMs: 2 });
});

afterEach(async () => {
  await plane.close();
  server.close();
});

const metrics = (running: number): string =>
  [`vllm:num_requests_running{engine="0"} ${running}`, 'vllm:num_requests_waiting{engine="0"} 2'].join("\n");

/** Everything the plane says about the engine, in order. */
async function* said(dpRank?: number): AsyncGenerator<string> {
  const queue: string[] = [];
  let wake: () => void = () => undefined;
  const say = (what: string): void => {
    queue.push(what);
    wake();
  };
  const load = ({ running, waiting, kvUsage }: ReportedLoad): void => say(`${running} ${waiting} ${kvUsage}`);
  const watch = plane.watch(`${url}/`, { load, problem: (message) => say(message.replace(url, "")) }, dpRank);
  try {
    for (;;) {
      while (queue.length === 0) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      yield queue.shift() ?? "";
    }
  } finally {
    await watch.close();
  }
}

/** What is said first that is not the same as before. */
async function nextAfter(all: AsyncGenerator<string>, before: string): Promise<unknown> {
  for (;;) {
    const next: IteratorResult<string, unknown> = await all.next();
    if (next.value !== before) return next.value;
  }
}

test("an engine is asked again and again", async () => {
  answer = { status: 200, text: metrics(3) };
  const all = said();
  expect(await nextAfter(all, "")).toBe("3 2 0");
  answer = { status: 200, text: metrics(4) };
  expect(await nextAfter(all, "3 2 0")).toBe("4 2 0");
  await all.return(undefined);
});

test("an engine that does not answer as it should is told of once, until it does", async () => {
  answer = { status: 503, text: "" };
  const all = said();
  expect((await all.next()).value).toBe("/metrics: answered with 503");
  answer = { status: 200, text: metrics(1) };
  expect((await all.next()).value).toBe("1 2 0");
  answer = { status: 200, text: "go_goroutines 4" };
  expect(await nextAfter(all, "1 2 0")).toBe("/metrics: no metrics of an engine that is known");
  await all.return(undefined);
});

test("gives up an answer that has no end, and says so", async () => {
  const endless = "x".repeat(1024 * 1024);
  server.removeAllListeners("request");
  server.on("request", (_, response: ServerResponse) => {
    response.on("error", () => undefined);
    const write = (): void => {
      while (!response.destroyed && response.write(endless));
    };
    response.on("drain", write);
    write();
  });
  const all = said();
  expect((await all.next()).value).toBe("/metrics: answered with more than 16777216 bytes");
  await all.return(undefined);
});
