import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { connectionFault } from "../../src/gateway/worker-fault.ts";
import type { AnswerController, AnswerHandler, AnswerHeaders, RequestPlane } from "../../src/planes/request/types.ts";
import { Heard } from "../support/heard.ts";
import type { SkippableTest } from "../support/required-component.ts";

/** A plane, and the end of it that stands before a worker's HTTP server. */
export interface RequestWorld {
  readonly plane: RequestPlane;
  /** Makes a worker reachable under a name. */
  serve(name: string, url: string): Promise<void>;
  close(): Promise<void>;
}

export interface RequestPlaneUnderTest {
  readonly title: string;
  /** Makes a world, or skips the test where what it needs is missing. */
  create(test: SkippableTest): Promise<RequestWorld>;
}

/** Notes what comes back. */
class NotingHandler implements AnswerHandler {
  readonly heard: Heard = new Heard();
  readonly chunks: Buffer[] = [];
  controller: AnswerController | undefined;
  status: number | undefined;
  headers: AnswerHeaders = {};
  error: Error | undefined;
  /** Asks for a pause after every piece. */
  isSlow = false;

  onRequestStart(controller: AnswerController): void {
    this.controller = controller;
    this.heard.note("sent");
  }

  onResponseStart(_: AnswerController, status: number, headers: AnswerHeaders): void {
    this.status = status;
    this.headers = headers;
    this.heard.note("head");
  }

  onResponseData(controller: AnswerController, chunk: Buffer): void {
    // The bytes may be used again by whoever read them.
    this.chunks.push(Buffer.from(chunk));
    if (this.isSlow) controller.pause();
    this.heard.note(`bytes ${this.length}`);
  }

  onResponseEnd(): void {
    this.heard.note("end");
  }

  onResponseError(_: AnswerController, error: Error): void {
    this.error = error;
    this.heard.note("error");
  }

  get length(): number {
    return this.chunks.reduce((sum, { length }) => sum + length, 0);
  }

  get text(): string {
    return Buffer.concat(this.chunks).toString();
  }

  until(what: string): Promise<void> {
    return this.heard.until(what);
  }
}

type Answering = (request: IncomingMessage, response: ServerResponse) => void;

/** What every request plane must do, whatever carries it. */
export function describeRequestPlaneContract(subject: RequestPlaneUnderTest): void {
  describe(`request plane ${subject.title}`, () => {
    let world: RequestWorld | undefined;
    let server: Server;
    let url: string;
    let answer: Answering;

    beforeEach(async (context) => {
      world = await subject.create(context);
      server = createServer((request, response) => answer(request, response)).listen(0, "127.0.0.1");
      await once(server, "listening");
      url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      await world.serve("a", url);
    });

    afterEach(async () => {
      await world?.close();
      server?.closeAllConnections();
      server?.close();
    });

    function send(body: Uint8Array | string = "{}", to = "a", handler = new NotingHandler()): NotingHandler {
      const headers = { "content-type": "application/json", traceparent: "00-1-2-03" };
      const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
      const origin = to === "a" ? url : "http://127.0.0.1:1";
      world?.plane.get(origin, to).dispatch({ method: "POST", path: "/v1/completions", headers, body: bytes }, handler);
      return handler;
    }

    test("takes a request to its worker and the answer back, whole", async () => {
      answer = (request, response) => {
        const { traceparent } = request.headers;
        response.writeHead(418, { "content-type": "text/plain", "retry-after": "3" });
        void bodyOf(request).then((body) =>
          response.end(`${request.method} ${request.url} ${String(traceparent)} ${body.toString()}`),
        );
      };
      const handler = send('{"prompt":"hällo"}');
      await handler.until("end");
      expect(handler.status).toBe(418);
      expect(handler.headers).toMatchObject({ "content-type": "text/plain", "retry-after": "3" });
      expect(handler.text).toBe('POST /v1/completions 00-1-2-03 {"prompt":"hällo"}');
      expect(handler.heard.notes.slice(0, 2)).toEqual(["sent", "head"]);
    });

    test("passes a stream on as it comes", async () => {
      let stream: ServerResponse | undefined;
      answer = (_, response) => {
        stream = response;
        response.writeHead(200, { "content-type": "text/event-stream" }).write("one");
      };
      const handler = send();
      await handler.until("bytes 3");
      stream?.write("two");
      await handler.until("bytes 6");
      stream?.end("three");
      await handler.until("end");
      expect(handler.text).toBe("onetwothree");
    });

    test("takes bodies that are larger than a message, both ways", async () => {
      answer = (request, response) => void bodyOf(request).then((body) => response.end(body));
      const body = Buffer.alloc(3_000_001, "warm");
      const handler = send(body);
      await handler.until("end");
      expect(Buffer.concat(handler.chunks).equals(body)).toBe(true);
    });

    test("keeps requests apart that are under way at once", async () => {
      answer = (request, response) => void bodyOf(request).then((body) => response.end(body));
      const handlers = Array.from({ length: 20 }, (_, i) => send(`request ${i}`));
      await Promise.all(handlers.map((handler) => handler.until("end")));
      expect(handlers.map(({ text }) => text)).toEqual(handlers.map((_, i) => `request ${i}`));
    });

    test("tells the worker that nobody waits any more", async () => {
      const left = new Promise<void>((resolve) => {
        answer = (_, response) => {
          response.on("close", resolve);
          response.writeHead(200, { "content-type": "text/event-stream" }).write("one");
        };
      });
      const handler = send();
      await handler.until("bytes 3");
      handler.controller?.abort(new Error("the client is gone"));
      await left;
      await handler.until("error");
      expect(handler.error?.message).toBe("the client is gone");
    });

    test("holds an answer back while its reader cannot take more, and loses nothing", async () => {
      const body = Buffer.alloc(4_000_000, "path");
      answer = (_, response) => response.end(body);
      const handler = new NotingHandler();
      handler.isSlow = true;
      send("{}", "a", handler);
      await handler.until("head");
      while (handler.length < body.length) {
        const { length } = handler;
        const more = nextNote(handler.heard);
        handler.controller?.resume();
        if (handler.length === length) await more;
      }
      handler.controller?.resume();
      await handler.until("end");
      expect(Buffer.concat(handler.chunks).equals(body)).toBe(true);
    });

    test("tells a worker that cannot be reached from one that broke off", async () => {
      const nobody = send("{}", "nobody");
      await nobody.until("error");
      expect(connectionFault(nobody.error as Error)).toBe("connect");
      answer = (_, response) => {
        response.writeHead(200, { "content-type": "text/event-stream" }).write("one", () => response.destroy());
      };
      const broken = send();
      await broken.until("error");
      expect(connectionFault(broken.error as Error)).toBe("reset");
      expect(broken.heard.notes).not.toContain("end");
    });

    test("ends what is under way when it is closed", async () => {
      answer = (_, response) => void response.writeHead(200).write("one");
      const handler = send();
      await handler.until("bytes 3");
      await world?.plane.close();
      await handler.until("error");
      expect(handler.heard.notes.at(-1)).toBe("error");
    });
  });
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts);
}

/** Resolves with the next thing that is heard. */
async function nextNote(heard: Heard): Promise<void> {
  const count = heard.notes.length;
  while (heard.notes.length === count) {
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
  }
}
