/**
 * The worker of the gateway's benchmark: answers at once, streams one chunk to every open stream each tick, computes nothing.
 * Prints its address; runs until it is killed.
 */
import { type ServerResponse, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { TICK_MS } from "./tick.ts";

const CHUNK = `data: ${JSON.stringify({
  id: "chatcmpl-00000000-0000-0000-0000-000000000000",
  object: "chat.completion.chunk",
  created: 1_760_000_000,
  model: "bench",
  choices: [{ index: 0, delta: { content: " something" }, logprobs: null, finish_reason: null }],
})}\n\n`;
const WHOLE = JSON.stringify({
  id: "chatcmpl-0",
  object: "chat.completion",
  created: 1_760_000_000,
  model: "bench",
  choices: [{ index: 0, message: { role: "assistant", content: "something" }, finish_reason: "stop" }],
  usage: { prompt_tokens: 8, completion_tokens: 1, total_tokens: 9, prompt_tokens_details: { cached_tokens: 0 } },
});

const streams = new Map<ServerResponse, number>();

setInterval(() => {
  for (const [response, left] of streams) {
    if (left > 1) {
      response.write(CHUNK);
      streams.set(response, left - 1);
    } else {
      streams.delete(response);
      response.end(`${CHUNK}data: [DONE]\n\n`);
    }
  }
}, TICK_MS);

const server = createServer((request, response) => {
  request.resume();
  request.on("end", () => {
    const chunks = Number(request.headers["x-request-id"] ?? 0);
    if (request.url === "/v1/models") response.end('{"object":"list","data":[{"id":"bench","object":"model"}]}');
    else if (request.method === "GET") response.end('{"status":"ok"}');
    else if (chunks === 0) response.writeHead(200, { "content-type": "application/json" }).end(WHOLE);
    else {
      response.writeHead(200, { "content-type": "text/event-stream" }).write(CHUNK);
      streams.set(response, chunks - 1);
    }
  });
  response.on("close", () => streams.delete(response));
});
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1", () => {
  process.stdout.write(`${JSON.stringify({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })}\n`);
});
