/**
 * The server of the load generator's benchmark: answers at once and streams chunks that carry the time of their sending, by the
 * clock that all processes of a host share. Streams are in groups that get their chunks together, as the batch of an engine
 * does; groups take turns. Over bare sockets, so that it costs little beside the client. Prints its address; runs until killed.
 */
import { type AddressInfo, createServer, type Socket } from "node:net";

const GROUPS = 10;
const CHUNK_GAP_MS = 50;
const HEAD =
  "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nx-warmpath-worker: instant\r\ntransfer-encoding: chunked\r\n\r\n";
const PIECE = { id: "chatcmpl-00000000", object: "chat.completion.chunk", created: 1_760_000_000, model: "bench" };
const BEFORE = `data: ${JSON.stringify(PIECE).slice(0, -1)},"choices":[{"index":0,"delta":{"content":"`;
const AFTER = '"},"logprobs":null,"finish_reason":null}]}\n\n';
const MODELS = '{"object":"list","data":[{"id":"bench","object":"model"}]}';

interface Stream {
  readonly socket: Socket;
  readonly chunks: number;
  left: number;
}

const groups: Set<Stream>[] = Array.from({ length: GROUPS }, () => new Set());
let opened = 0;
let turns = 0;
const startedMs = performance.now();

// By the time itself: timers are late, and 10,000 chunks a second must be that.
setInterval(() => {
  const dueTurns = ((performance.now() - startedMs) * GROUPS) / CHUNK_GAP_MS;
  for (; turns < dueTurns; turns++) {
    const group = groups[turns % GROUPS];
    for (const stream of group) sendChunk(stream, group);
  }
}, 1);

function sendChunk(stream: Stream, group: Set<Stream>): void {
  const { socket } = stream;
  stream.left -= 1;
  if (stream.left > 0) {
    socket.write(framed(`${BEFORE}${process.hrtime.bigint()} ${AFTER}`));
    return;
  }
  group.delete(stream);
  const usage = { prompt_tokens: 16, completion_tokens: stream.chunks, prompt_tokens_details: { cached_tokens: 0 } };
  const tail = `data: ${JSON.stringify({ ...PIECE, choices: [], usage })}\n\ndata: [DONE]\n\n`;
  socket.write(`${framed(`${BEFORE}${process.hrtime.bigint()} ${AFTER}${tail}`)}0\r\n\r\n`);
}

function framed(text: string): string {
  return `${text.length.toString(16)}\r\n${text}\r\n`;
}

function answer(socket: Socket, request: string): void {
  if (request.startsWith("GET")) {
    socket.write(
      `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${MODELS.length}\r\n\r\n${MODELS}`,
    );
    return;
  }
  const chunks = Number(/"max_tokens":(\d+)/.exec(request)?.[1] ?? 1);
  const group = groups[opened++ % GROUPS];
  const stream = { socket, chunks, left: chunks };
  socket.write(HEAD);
  group.add(stream);
  socket.once("close", () => group.delete(stream));
}

const server = createServer((socket) => {
  let received = "";
  socket.setNoDelay(true);
  socket.on("error", () => {});
  socket.on("data", (bytes: Buffer) => {
    received += bytes.toString("latin1");
    const end = received.indexOf("\r\n\r\n");
    if (end < 0) return;
    const length = Number(/content-length: (\d+)/i.exec(received)?.[1] ?? 0);
    if (received.length < end + 4 + length) return;
    const request = received.slice(0, end + 4 + length);
    received = received.slice(end + 4 + length);
    answer(socket, request);
  });
});
server.listen(0, "127.0.0.1", () => {
  process.stdout.write(`${JSON.stringify({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })}\n`);
});
