/** An engine that notes what reaches it and answers as a test says. */
import { once } from "node:events";
import { type IncomingHttpHeaders, type IncomingMessage, type ServerResponse, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

export interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly body: Readonly<Record<string, unknown>>;
}

export interface RecordingEngine {
  readonly url: string;
  /** In the order in which they came, probes excepted. */
  readonly received: readonly Received[];
  /** The `authorization` of every probe. */
  readonly probedWith: ReadonlySet<string | undefined>;
  close(): Promise<void>;
}

/** An answer of one token. */
export const SHORT_ANSWER: string = JSON.stringify({
  choices: [{ index: 0, message: { role: "assistant", content: "hi" }, text: "hi", finish_reason: "stop" }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
});

/** Starts an engine; unless told otherwise it answers everything with one token. */
export async function startRecordingEngine(
  answer: (response: ServerResponse, received: Received) => void = (response) => void response.end(SHORT_ANSWER),
): Promise<RecordingEngine> {
  const received: Received[] = [];
  const probedWith = new Set<string | undefined>();
  const server = createServer((request, response) => {
    if (request.method === "GET") {
      probedWith.add(request.headers.authorization);
      const models = { object: "list", data: [{ id: "m", object: "model" }] };
      response.writeHead(request.url === "/health" || request.url === "/v1/models" ? 200 : 404);
      response.end(request.url === "/v1/models" ? JSON.stringify(models) : "{}");
      return;
    }
    void take(request, response);
  });
  const take = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const one = { headers: request.headers, body: JSON.parse(await text(request)) as Received["body"] };
    received.push(one);
    answer(response, one);
  };
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    probedWith,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
