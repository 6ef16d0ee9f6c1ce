/** What clients that send requests ahead on one connection do to a gateway. */
import type { ServerResponse } from "node:http";
import { type Socket, connect } from "node:net";
import { expect, onTestFinished, test, vi } from "vitest";
import { createPolicy } from "../core/policy/registry.ts";
import { Router } from "../core/router.ts";
import { InlineTokens } from "../planes/tokens/inline.ts";
import { WordTokenizer } from "../tokenizer/word-tokenizer.ts";
import { LocalDecider } from "./local-decider.ts";
import { type Script, scriptedWorker } from "./scripted-worker.test-support.ts";
import { Gateway } from "./server.ts";

const MOST_STREAMS = 6;
const DONE = "data: [DONE]\n\n";
const INVALID_HTTP = 'warmpath_requests_invalid_total{code="invalid_http"} 1\n';

interface Client {
  readonly socket: Socket;
  readonly heard: () => string;
}

interface Served {
  readonly gateway: Gateway;
  readonly router: Router;
  readonly url: string;
  /** Connects, sends this, and hears what comes. */
  readonly client: (sent: string) => Client;
}

/** A gateway in front of one worker. */
async function serving(script: Script): Promise<Served> {
  const worker = await scriptedWorker(script);
  const router = new Router(createPolicy("round-robin"), { blockTokens: 16, maxReplicas: 1, maxBlocks: 1024 });
  const decider = new LocalDecider({ router });
  decider.fleet.appeared({ name: "e", url: worker.url });
  const tokens = new InlineTokens(new WordTokenizer(), "exact");
  const gateway = new Gateway({ decider, tokens, blockTokens: 16, limits: { maxStreams: MOST_STREAMS } });
  const url = await gateway.listen();
  onTestFinished(async () => {
    await gateway.close(0);
    await decider.close();
    worker.close();
  });
  const client = (sent: string): Client => {
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    let heard = "";
    socket.on("data", (chunk) => (heard += chunk.toString()));
    socket.on("error", () => {});
    socket.write(sent);
    onTestFinished(() => void socket.destroy());
    return { socket, heard: () => heard };
  };
  return { gateway, router, url, client };
}

function stream(prompt: string): string {
  const body = JSON.stringify({ model: "m", prompt, stream: true });
  return `POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
}

function event(text: string): string {
  return `data: {"choices":[{"text":"${text}"}]}\n\n`;
}

/** Answers with the prompt and then waits to be told to go on; notes whom it has answered. */
function held(answers: { prompt: string; response: ServerResponse }[]): Script {
  return (body, response) => {
    const { prompt } = JSON.parse(body) as { prompt: string };
    response.writeHead(200, { "content-type": "text/event-stream" }).write(event(prompt));
    answers.push({ prompt, response });
  };
}

const unfinished = { failed: 0, unfinished: 0 };

test("garbage behind two streams costs neither its answer, is refused once, and ends the connection", async () => {
  const answers: { prompt: string; response: ServerResponse }[] = [];
  const { gateway, router, url, client } = await serving(held(answers));
  const { socket, heard } = client(stream("first") + stream("second"));
  await vi.waitFor(() => expect(heard()).toContain(event("first")));
  for (let i = 0; i < 3; i++) await new Promise((resolve) => socket.write("GARBAGE GARBAGE\r\n\r\n", resolve));
  await vi.waitFor(async () => expect(await (await fetch(`${url}/metrics`)).text()).toContain(INVALID_HTTP));
  answers[0].response.end(DONE);
  await vi.waitFor(() => expect(heard()).toContain(event("second")));
  answers[1].response.end(DONE);
  await vi.waitFor(() => expect(socket.closed).toBe(true));
  expect(heard().match(/^HTTP\/1\.1 \d+/gm)).toEqual(["HTTP/1.1 200", "HTTP/1.1 200", "HTTP/1.1 400"]);
  expect(heard()).toMatch(/"code":"invalid_http"[^]*\}$/);
  expect(gateway.open).toBe(0);
  expect(router.accounting).toMatchObject({ ...unfinished, offered: 2, completed: 2, cancelled: 0 });
  expect(await (await fetch(`${url}/metrics`)).text()).toContain(INVALID_HTTP);
});

test("garbage behind a request that waits for its worker leaves it waiting", async () => {
  let answer: (() => void) | undefined;
  const { router, client } = await serving((_body, response) => {
    answer = () => response.writeHead(200, { "content-type": "text/event-stream" }).end(event("late") + DONE);
  });
  const { socket, heard } = client(`${stream("first")}\0\0\0`);
  await vi.waitFor(() => expect(answer).toBeDefined());
  answer?.();
  await vi.waitFor(() => expect(socket.closed).toBe(true));
  expect(heard().match(/^HTTP\/1\.1 \d+/gm)).toEqual(["HTTP/1.1 200", "HTTP/1.1 400"]);
  expect(heard()).toContain(event("late"));
  expect(router.accounting).toMatchObject({ ...unfinished, offered: 1, completed: 1 });
});

test("a client that leaves behind its garbage is noticed", async () => {
  const { gateway, router, client } = await serving(held([]));
  const { socket, heard } = client(`${stream("first")}GARBAGE\r\n\r\n`);
  await vi.waitFor(() => expect(heard()).toContain(event("first")));
  socket.destroy();
  await vi.waitFor(() => expect(gateway.open).toBe(0));
  expect(router.accounting).toMatchObject({ ...unfinished, offered: 1, cancelled: 1 });
});

test("a client that leaves with requests sent ahead leaves no place taken, and they are never offered", async () => {
  const { gateway, router, client } = await serving(held([]));
  const { socket, heard } = client(stream("x").repeat(MOST_STREAMS));
  await vi.waitFor(() => expect(heard()).toContain(event("x")));
  socket.destroy();
  await vi.waitFor(() => expect(gateway.open).toBe(0));
  expect(router.accounting).toMatchObject({ ...unfinished, offered: 1, cancelled: 1 });
});

test("streams sent ahead are answered in order, each when the one before is over, and take one place", async () => {
  const answers: { prompt: string; response: ServerResponse }[] = [];
  const { gateway, router, client } = await serving(held(answers));
  const prompts = ["a", "b", "c", "d", "e", "f", "g", "h"];
  const { heard } = client(prompts.map(stream).join(""));
  for (const [i, prompt] of prompts.entries()) {
    await vi.waitFor(() => expect(heard()).toContain(event(prompt)));
    expect(answers.map(({ prompt: asked }) => asked)).toEqual(prompts.slice(0, i + 1));
    expect(gateway.open).toBe(1);
    answers[i].response.end(DONE);
  }
  await vi.waitFor(() => expect(heard().split(DONE)).toHaveLength(prompts.length + 1));
  expect(router.accounting).toMatchObject({ offered: prompts.length, completed: prompts.length });
});

test("a long answer behind another comes whole to a client that reads late", async () => {
  const text = "z".repeat(20_000);
  const count = 500;
  let sent = 0;
  const { router, client } = await serving((body, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    if (body.includes("short")) {
      response.end(event("short") + DONE);
      return;
    }
    const send = (): void => {
      while (sent++ < count) {
        if (response.write(event(text))) continue;
        response.once("drain", send);
        return;
      }
      response.end(DONE);
    };
    send();
  });
  const { socket, heard } = client(stream("short") + stream("long"));
  await vi.waitFor(() => expect(heard()).toContain(event("short")));
  socket.pause();
  // The worker can send no more: all buffers on the way are full, the gateway's last.
  let before = -1;
  await vi.waitFor(() => {
    const hasStopped = sent > 0 && sent === before;
    before = sent;
    expect(hasStopped).toBe(true);
  });
  socket.resume();
  await vi.waitFor(() => expect(heard().split(DONE)).toHaveLength(3), { timeout: 10_000 });
  expect(heard().split(text)).toHaveLength(count + 1);
  expect(router.accounting).toMatchObject({ offered: 2, completed: 2 });
});
