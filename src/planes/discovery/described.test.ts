import { type IncomingMessage, type Server, type ServerResponse, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, test, vi } from "vitest";
import { DescribedDiscovery } from "./described.ts";
import { SELF_DESCRIPTION_PATH, type Introduction, askForDescription } from "./parts/self-description.ts";
import type { DiscoveredWorker, DiscoveryListener, DiscoveryPlane } from "./types.ts";

/** A plane that the test speaks through, and what came out of it. */
class World implements DiscoveryPlane {
  readonly heard: (readonly [what: string, worker: unknown])[] = [];
  readonly answers: ((introduction: Introduction) => void)[] = [];
  speak!: DiscoveryListener;
  readonly #first: readonly DiscoveredWorker[];

  constructor(...first: readonly DiscoveredWorker[]) {
    this.#first = first;
  }

  watch(listener: DiscoveryListener): Promise<{ close(): Promise<void> }> {
    this.speak = listener;
    for (const worker of this.#first) listener.appeared(worker);
    return Promise.resolve({ close: () => Promise.resolve() });
  }

  async start(intervalMs = 60_000): Promise<{ close(): Promise<void> }> {
    const ask = (): Promise<Introduction> => new Promise((resolve) => this.answers.push(resolve));
    const listener: DiscoveryListener = {
      appeared: (worker) => this.heard.push(["appeared", worker]),
      changed: (worker) => this.heard.push(["changed", worker]),
      left: (name) => this.heard.push(["left", name]),
    };
    return await new DescribedDiscovery({ plane: this, intervalMs, ask }).watch(listener);
  }
}

const WORKER: DiscoveredWorker = { name: "a", url: "http://a:1", kvBlocks: 7 };
const said: Introduction = {
  kind: "described",
  description: {
    worker: { name: "itself", url: "http://elsewhere:1", kvBlocks: 9, batchSlots: 4, events: { url: "http://a:1" } },
    tokenizer: "word",
  },
};
const COMPLETED: DiscoveredWorker = { ...WORKER, batchSlots: 4, events: { url: "http://a:1" } };

describe("workers that describe themselves", () => {
  test("are told of with what they say, but for what was written down", async () => {
    const world = new World(WORKER);
    const starting = world.start();
    expect(world.heard).toEqual([]);
    world.answers[0](said);
    const watch = await starting;
    expect(world.heard).toEqual([["appeared", COMPLETED]]);
    world.speak.left("a");
    expect(world.heard.at(-1)).toEqual(["left", "a"]);
    await watch.close();
  });

  test("are not asked where somebody wrote down where their events are", async () => {
    const written = { ...WORKER, events: { url: "tcp://a:5557" } };
    const world = new World(written);
    await world.start();
    expect(world.heard).toEqual([["appeared", written]]);
    expect(world.answers).toHaveLength(0);
  });

  test("are told of as they are if they are engines of another kind, and not asked again", async () => {
    vi.useFakeTimers();
    const world = new World(WORKER);
    const starting = world.start(10);
    world.answers[0]({ kind: "foreign" });
    await starting;
    vi.advanceTimersByTime(1000);
    vi.useRealTimers();
    expect(world.heard).toEqual([["appeared", WORKER]]);
    expect(world.answers).toHaveLength(1);
  });

  test("that cannot be reached are asked until they answer", async () => {
    vi.useFakeTimers();
    const world = new World(WORKER);
    const starting = world.start(10);
    world.answers[0]({ kind: "unreachable" });
    await starting;
    expect(world.heard).toEqual([["appeared", WORKER]]);
    await vi.advanceTimersByTimeAsync(10);
    world.answers[1]({ kind: "unreachable" });
    await vi.advanceTimersByTimeAsync(10);
    world.answers[2](said);
    await vi.advanceTimersByTimeAsync(100);
    vi.useRealTimers();
    expect(world.heard.slice(1)).toEqual([["changed", COMPLETED]]);
    expect(world.answers).toHaveLength(3);
  });

  test("that have left before they answered are never told of", async () => {
    const world = new World(WORKER);
    const starting = world.start();
    world.speak.left("a");
    world.answers[0](said);
    await starting;
    expect(world.heard).toEqual([]);
  });

  test("that are described anew are asked anew, and an answer to the first question is not heard", async () => {
    const world = new World(WORKER);
    const starting = world.start();
    const other = { ...WORKER, url: "http://b:1" };
    world.speak.changed(other);
    world.answers[0](said);
    world.answers[1]({ kind: "foreign" });
    await starting;
    expect(world.heard).toEqual([["appeared", other]]);
  });

  test.each(["foreign", "unreachable"] as const)("that changed are told of when they are %s", async (kind) => {
    vi.useFakeTimers();
    const world = new World(WORKER);
    const starting = world.start(10);
    world.answers[0]({ kind: "foreign" });
    const watch = await starting;
    const moved = { ...WORKER, url: "http://b:1" };
    world.speak.changed(moved);
    world.answers[1]({ kind });
    await vi.advanceTimersByTimeAsync(10);
    // Whoever could not be reached is asked again, and nothing new is told of it.
    if (kind === "unreachable") world.answers[2]({ kind });
    await vi.advanceTimersByTimeAsync(0);
    await watch.close();
    vi.useRealTimers();
    expect(world.heard).toEqual([
      ["appeared", WORKER],
      ["changed", moved],
    ]);
  });

  test("that leave while they are asked anew are told to have left", async () => {
    const world = new World(WORKER);
    const starting = world.start();
    world.answers[0]({ kind: "foreign" });
    await starting;
    world.speak.changed({ ...WORKER, url: "http://b:1" });
    world.speak.left("a");
    expect(world.heard.at(-1)).toEqual(["left", "a"]);
  });

  test("are not told of after the watch is closed", async () => {
    const world = new World();
    const watch = await world.start();
    world.speak.appeared(WORKER);
    await watch.close();
    world.answers[0](said);
    await Promise.resolve();
    expect(world.heard).toEqual([]);
  });
});

describe("the question", () => {
  const servers: Server[] = [];
  afterEach(() => {
    for (const server of servers.splice(0)) server.close();
  });

  async function answered(
    answer: (request: IncomingMessage, response: ServerResponse) => void,
    answerMs = 30_000,
  ): Promise<Introduction> {
    const server = createServer(answer);
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return await askForDescription(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, answerMs);
  }

  test("is understood by those who describe themselves, whatever else they say", async () => {
    const description = { url: "http://a:1", name: "a", blockTokens: 32, tokenizer: "word", mood: "good" };
    const introduction = await answered(({ url }, response) =>
      response.writeHead(url === SELF_DESCRIPTION_PATH ? 200 : 404).end(JSON.stringify(description)),
    );
    expect(introduction).toEqual({
      kind: "described",
      description: { worker: { url: "http://a:1", name: "a", blockTokens: 32 }, tokenizer: "word" },
    });
  });

  test.each([
    ["a path that is not there", 404, "{}"],
    ["no JSON", 200, "<html>"],
    ["no worker", 200, '{"url": 3}'],
    ["a page without an end", 200, `{"url":"http://a:1","more":"${"x".repeat(70_000)}"}`],
  ])("is answered by other engines with %s", async (_, status, body) => {
    expect(await answered((__, response) => response.writeHead(status).end(body))).toEqual({ kind: "foreign" });
  });

  test("may stay without an answer", async () => {
    expect(await answered(() => {}, 20)).toEqual({ kind: "unreachable" });
    expect(await answered((_, response) => response.destroy())).toEqual({ kind: "unreachable" });
  });
});
