import { once } from "node:events";
import { type IncomingMessage, createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Heard } from "../../../test/support/heard.ts";
import { NatsServer } from "../../../test/support/nats-server.ts";
import { NatsLink } from "../nats/connection.ts";
import { NatsResponder } from "./nats-responder.ts";
import { NatsRequestPlane } from "./nats.ts";

const PATIENT = { beatMs: 5, silenceMs: 60_000 };
/** Longer than anybody waits for a sign of life. */
const LONG_MS = 100_000;

/** Stands still, or goes on by a long time whenever it is looked at: whatever was on its way is long past at the next look. */
class HurryingClock {
  isHurrying = false;
  #nowMs = 0;

  nowMs(): number {
    if (this.isHurrying) this.#nowMs += LONG_MS;
    return this.#nowMs;
  }
}

describe("the request plane over NATS", () => {
  let nats: NatsServer;
  let server: Server;
  let gatewayLink: NatsLink;
  let workerLink: NatsLink;
  let heard: Heard;
  let fault: NodeJS.ErrnoException | undefined;
  /** Resolves when the worker's server sees that its client has left. */
  let left: Promise<void>;
  let responder: NatsResponder;
  let plane: NatsRequestPlane;

  beforeEach(async (context) => {
    nats = await NatsServer.start(context);
    heard = new Heard();
    fault = undefined;
    let hasLeft = (): void => undefined;
    left = new Promise((resolve) => (hasLeft = resolve));
    server = createServer((_, response) => {
      response.on("close", () => hasLeft());
      response.writeHead(200, { "content-type": "text/event-stream" }).write("one");
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    [gatewayLink, workerLink] = await Promise.all([connected(), connected()]);
  });

  afterEach(async () => {
    await plane?.close();
    responder?.kill();
    await gatewayLink?.close();
    await workerLink?.close();
    server?.closeAllConnections();
    server?.close();
    await nats?.close();
  });

  async function connected(): Promise<NatsLink> {
    const link = await NatsLink.load({ url: nats.url, reconnectMs: 1 });
    await up(link);
    return link;
  }

  function up(link: NatsLink): Promise<void> {
    return new Promise((resolve) => link.watch({ up: () => resolve() }));
  }

  async function begin(ofGateway: object, ofWorker: object): Promise<void> {
    const targetUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    responder = new NatsResponder({ link: workerLink, name: "a", targetUrl, maxBodyBytes: 1000, ...ofWorker });
    plane = new NatsRequestPlane({ link: gatewayLink, ...ofGateway });
    await up(workerLink);
    await workerLink.connection?.flush();
    send();
  }

  function send(body = "{}", more: { path?: string; headers?: Record<string, string> } = {}): void {
    const { path = "/v1/completions", headers = {} } = more;
    plane.get("", "a").dispatch(
      { method: "POST", path, headers, body: new TextEncoder().encode(body) },
      {
        onRequestStart: () => heard.note("sent"),
        onResponseStart: (_, status) => heard.note(`status ${status}`),
        onResponseData: (_, chunk) => heard.note(chunk.toString()),
        onResponseEnd: () => heard.note("end"),
        onResponseError: (_, error) => {
          fault = error;
          heard.note("error");
        },
      },
    );
  }

  test("notices that a worker is gone without a word", async () => {
    const clock = new HurryingClock();
    await begin({ ...PATIENT, nowMs: () => clock.nowMs() }, PATIENT);
    await heard.until("one");
    await workerLink.close();
    clock.isHurrying = true;
    await heard.until("error");
    expect(fault?.code).toBe("ECONNRESET");
  });

  test("frees the worker when the gateway is gone without a word", async () => {
    const clock = new HurryingClock();
    await begin(PATIENT, { ...PATIENT, nowMs: () => clock.nowMs() });
    await heard.until("one");
    await gatewayLink.close();
    clock.isHurrying = true;
    await left;
    expect(heard.notes).not.toContain("end");
  });

  test("a quiet stream goes on for as long as the worker gives signs of life", async () => {
    let nowMs = 0;
    const beats = new Heard();
    let count = 0;
    workerLink.connection?.subscribe("_INBOX.>", {
      callback: (_, { subject }) => (subject.endsWith(".beat") ? beats.note(`beat ${++count}`) : undefined),
    });
    await begin({ beatMs: 5, silenceMs: 1000, nowMs: () => nowMs }, PATIENT);
    await heard.until("one");
    for (let step = 0; step < 5; step++) {
      nowMs += 600;
      await beats.until(`beat ${count + 2}`);
    }
    expect(heard.notes).not.toContain("error");
  });

  test("ends what is under way when the NATS server ends, and goes on when it is back", async () => {
    await begin(PATIENT, PATIENT);
    await heard.until("one");
    await nats.stop();
    await heard.until("error");
    await left;
    heard.notes.length = 0;
    send();
    await heard.until("error");
    expect(fault?.code).toBe("ENETDOWN");
    heard.notes.length = 0;
    const again = Promise.all([up(gatewayLink), up(workerLink)]);
    await nats.again();
    await again;
    await workerLink.connection?.flush();
    send();
    await heard.until("one");
  });

  test("carries bodies where the server takes small messages only, and says so of headers that are larger", async (context) => {
    await Promise.all([gatewayLink.close(), workerLink.close(), nats.close()]);
    nats = await NatsServer.start(context, { maxPayload: 4096 });
    [gatewayLink, workerLink] = await Promise.all([connected(), connected()]);
    const lengths: (string | undefined)[] = [];
    server.on("request", (incoming: IncomingMessage) => lengths.push(incoming.headers["content-length"]));
    await begin(PATIENT, { ...PATIENT, maxBodyBytes: 1_000_000 });
    await heard.until("one");
    heard.notes.length = 0;
    send("x".repeat(100_000));
    await heard.until("one");
    expect(lengths).toEqual(["2", "100000"]);
    send("{}", { headers: { long: "x".repeat(5000) } });
    await heard.until("error");
    expect(fault?.message).toBe("the headers are larger than a message on the NATS server may be");
  });

  test("asks nobody but the worker's own server, whatever the path, and outlives headers that are none", async () => {
    const paths: (string | undefined)[] = [];
    server.on("request", (incoming: IncomingMessage) => paths.push(incoming.url));
    await begin(PATIENT, PATIENT);
    await heard.until("one");
    heard.notes.length = 0;
    send("{}", { path: "//127.0.0.1:1/v1" });
    await heard.until("one");
    expect(paths).toEqual(["/v1/completions", "//127.0.0.1:1/v1"]);
    send("{}", { headers: { wrong: "a\nb" } });
    await heard.until("error");
    expect(fault?.message).toContain("Invalid character in header");
  });

  test("refuses a body that is larger than the worker takes", async () => {
    await begin(PATIENT, PATIENT);
    await heard.until("one");
    heard.notes.length = 0;
    send("x".repeat(2000));
    await heard.until("end");
    expect(heard.notes).toContain("status 413");
  });
});
