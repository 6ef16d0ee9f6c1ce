/**
 * What the gateway is measured against: node:http in front, undici `dispatch` behind, `res.write` between, and nothing else.
 * Called with the worker's address; prints its own.
 */
import { type IncomingMessage, type ServerResponse, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type Dispatcher, Pool } from "undici";

const pool = new Pool(process.argv[2] ?? "", { headersTimeout: 0, bodyTimeout: 0 });

class Forward implements Dispatcher.DispatchHandler {
  readonly #response: ServerResponse;
  controller: Dispatcher.DispatchController | undefined;

  constructor(response: ServerResponse) {
    this.#response = response;
    response.on("drain", () => this.controller?.resume());
    response.on("close", () => {
      if (!response.writableFinished) this.controller?.abort(new Error("the client left"));
    });
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller;
  }

  onResponseStart(_controller: unknown, status: number, headers: Record<string, string | string[] | undefined>): void {
    this.#response.writeHead(status, { "content-type": headers["content-type"] ?? "" });
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!this.#response.write(chunk)) controller.pause();
  }

  onResponseEnd(): void {
    this.#response.end();
  }

  onResponseError(): void {
    this.#response.destroy();
  }
}

function serve(request: IncomingMessage, response: ServerResponse): void {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    const headers: Record<string, string> = { "content-type": "application/json" };
    const id = request.headers["x-request-id"];
    if (typeof id === "string") headers["x-request-id"] = id;
    const body = Buffer.concat(chunks);
    pool.dispatch({ method: "POST", path: request.url ?? "/", headers, body }, new Forward(response));
  });
}

const server = createServer(serve);
server.listen(0, "127.0.0.1", () => {
  process.stdout.write(`${JSON.stringify({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })}\n`);
});
