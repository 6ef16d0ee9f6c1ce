import { afterAll, afterEach, describe, expect, test } from "vitest";
import { NatsServer } from "../support/nats-server.ts";
import { startTestGateway, type GatewayUnderTest } from "../support/running-gateway.ts";
import { startTestWorker, words, type WorkerUnderTest } from "../support/running-worker.ts";

const MODEL = "llama-3.1-8b";
const ZMQ = { endpoint: "tcp://127.0.0.1:*", replayEndpoint: "tcp://127.0.0.1:*", topic: "", replayDepth: 1000 };

describe("any request plane goes with any event plane", () => {
  let server: NatsServer | undefined;
  let fleets = 0;
  let gateway: GatewayUnderTest | undefined;
  const workers: WorkerUnderTest[] = [];

  afterEach(async () => {
    await gateway?.close();
    gateway = undefined;
    await Promise.all(workers.splice(0).map((worker) => worker.close(0)));
  });

  afterAll(() => server?.close());

  for (const events of ["http", "zmq", "nats"] as const) {
    for (const requests of ["http", "nats"] as const) {
      test(`events over ${events}, requests over ${requests}`, async (context) => {
        server ??= await NatsServer.start(context);
        const natsPrefix = `fleet-${++fleets}`;
        const eventPlane = events === "nats" ? server.url : "http";
        const requestPlane = requests === "nats" ? server.url : "http";
        for (const name of ["a", "b"]) {
          const flags = { name, eventPlane, requestPlane, natsPrefix };
          workers.push(await startTestWorker(flags, events === "zmq" ? { zmq: ZMQ } : {}));
        }
        const written = workers.map(({ name, url, zmq }) =>
          events === "zmq" ? `${name}=${url},events=${zmq?.endpoint},replay=${zmq?.replayEndpoint}` : `${name}=${url}`,
        );
        gateway = await startTestGateway({
          worker: written,
          tokenizer: "word",
          eventPlane: events === "nats" ? server.url : events,
          requestPlane,
          natsPrefix,
        });
        const { decider } = gateway;
        await expect.poll(() => decider.readiness().workers.ready).toBe(2);
        const served: (string | null)[] = [];
        for (let turn = 0; turn < 3; turn++) served.push(await ask(gateway));
        // The first request leaves its prompt somewhere; the others must find it there.
        expect(new Set(served).size).toBe(1);
        expect(decider.router.accounting).toMatchObject({ offered: 3, completed: 3 });
        const replica = decider.router.fleet.find(served[0] ?? "");
        await expect.poll(() => decider.router.feedCounts(replica ?? -1)?.applied).toBeGreaterThan(0);
        expect(decider.router.indexState(replica ?? -1)).toBe("live");
      });
    }
  }

  /** Asks for a few words and reads them as a stream; answers with who served. */
  async function ask({ client }: GatewayUnderTest): Promise<string | null> {
    const { data, response } = await client.chat.completions
      .create({
        model: MODEL,
        stream: true,
        max_tokens: 5,
        messages: [{ role: "user", content: words(300, "shared") }],
      })
      .withResponse();
    let text = "";
    for await (const chunk of data) text += chunk.choices[0]?.delta.content ?? "";
    expect(text.trim().split(" ")).toHaveLength(5);
    return response.headers.get("x-warmpath-worker");
  }
});
