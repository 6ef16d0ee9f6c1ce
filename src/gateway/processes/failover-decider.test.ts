import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { type Socket, connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createPolicy } from "../../core/policy/registry.ts";
import { Router } from "../../core/router.ts";
import type { DecidedRequest, OfferedRequest, Placement } from "../decider.ts";
import { LocalDecider } from "../local-decider.ts";
import { DeciderServer } from "./decider-server.ts";
import { FailoverDecider } from "./failover-decider.ts";

const PREPARATION = { parseMs: 0, tokenizeMs: 0, hashMs: 0 };
const offer = (id: string): OfferedRequest => ({
  id,
  promptTokens: 5,
  sequence: new Uint32Array(0),
  blocks: 0,
  preparation: PREPARATION,
});

/** A request that notes what it hears. */
class Noted implements DecidedRequest {
  readonly heard: string[] = [];
  placement: Placement | undefined;

  place(placement: Placement): void {
    this.placement = placement;
    this.heard.push(placement.decision === undefined ? "placed by the stand-in" : "placed");
  }
  shed({ code }: { code: string }): void {
    this.heard.push(code);
  }
  over(notRetried?: string): void {
    this.heard.push(notRetried === undefined ? "over" : `over: ${notRetried}`);
  }
}

let folder: string;
let path: string;
const open: { close(): Promise<void> }[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "warmpath-decider-"));
  path = join(folder, "decider.sock");
});

afterEach(async () => {
  for (const each of open.splice(0).toReversed()) await each.close();
  rmSync(folder, { recursive: true });
});

/** A decider behind a socket, with workers a and b; `slots` is how many requests each takes. */
async function startDecider(slots = 100): Promise<{ decider: LocalDecider; server: DeciderServer }> {
  const admission = { mode: "queue", watermarks: { batchSlotsFraction: 1 } } as const;
  const options = { blockTokens: 16, maxReplicas: 4, maxBlocks: 1024, admission };
  const router = new Router(createPolicy("round-robin"), options);
  const decider = new LocalDecider({ router });
  for (const name of ["a", "b"]) decider.fleet.appeared({ name, url: `http://${name}:1`, batchSlots: slots });
  const server = new DeciderServer(decider);
  await server.listen(path);
  return { decider, server };
}

async function proxy(): Promise<FailoverDecider> {
  const made = new FailoverDecider({ path, blockTokens: 16 });
  open.push(made);
  await made.ready;
  return made;
}

async function stop({ decider, server }: Awaited<ReturnType<typeof startDecider>>): Promise<void> {
  await server.close();
  await decider.close();
}

describe("a decider a socket away", () => {
  test("places, hears what becomes of it, and says when it is over", async () => {
    const running = await startDecider();
    open.push({ close: () => stop(running) });
    const { router } = running.decider;
    const made = await proxy();
    const noted = new Noted();
    made.offer(offer("x"), noted);
    await vi.waitFor(() => expect(noted.heard).toEqual(["placed"]));
    expect(noted.placement).toEqual({ worker: "a", url: "http://a:1", decision: 1, isToBeHeard: true });
    made.sent("x");
    made.firstToken("x");
    for (let i = 0; i < 5; i++) made.grew("x", 1);
    await vi.waitFor(() => expect(router.describeLoad(0).modelled).toMatchObject({ inFlight: 1, contextTokens: 10 }));
    made.ended("x", { outcome: "completed", cachedTokens: 0, ttftMs: 1 });
    await vi.waitFor(() => expect(noted.heard).toEqual(["placed", "over"]));
    expect(router.accounting).toMatchObject({ offered: 1, completed: 1, unfinished: 0 });
  });

  test("tries a failure on another worker", async () => {
    const running = await startDecider();
    open.push({ close: () => stop(running) });
    const made = await proxy();
    const noted = new Noted();
    made.offer(offer("x"), noted);
    await vi.waitFor(() => expect(noted.placement?.worker).toBe("a"));
    made.ended("x", { outcome: "failed", fault: "reset" });
    await vi.waitFor(() => expect(noted.placement?.worker).toBe("b"));
  });

  test("has a cut stream continued elsewhere, by the prompt with what was said", async () => {
    const running = await startDecider();
    open.push({ close: () => stop(running) });
    const made = await proxy();
    const noted = new Noted();
    made.offer(offer("x"), noted);
    await vi.waitFor(() => expect(noted.placement?.worker).toBe("a"));
    made.firstToken("x");
    const sequence = Uint32Array.of(1, 2, 3, 0xffff_ffff, 9, 9);
    const continuation = { promptTokens: 35, sequence, blocks: 2, maxOutputTokens: 3 };
    made.ended("x", { outcome: "failed", fault: "reset", ttftMs: 1, continuation });
    await vi.waitFor(() => expect(noted.placement?.worker).toBe("b"));
    const { router } = running.decider;
    expect(router.log.latest(1)[0]).toMatchObject({ continues: 1, promptTokens: 35, promptBlocks: 2 });
    expect(router.index.match(sequence, 2).cached[1]).toBe(2);
    made.firstToken("x");
    made.ended("x", { outcome: "completed" });
    await vi.waitFor(() => expect(noted.heard).toEqual(["placed", "placed", "over"]));
    expect(router.accounting).toMatchObject({ offered: 1, completed: 1, unfinished: 0 });
  });

  test("says that it did not try again, and why", async () => {
    const running = await startDecider();
    open.push({ close: () => stop(running) });
    running.decider.retryBudget.configure({ share: 0, perSecond: 0 });
    const made = await proxy();
    const noted = new Noted();
    made.offer(offer("x"), noted);
    await vi.waitFor(() => expect(noted.heard).toEqual(["placed"]));
    made.ended("x", { outcome: "failed", fault: "reset" });
    await vi.waitFor(() => expect(noted.heard).toEqual(["placed", "over: retry-budget"]));
  });

  test("accounts for the requests of a proxy that is lost", async () => {
    const running = await startDecider();
    open.push({ close: () => stop(running) });
    const made = await proxy();
    made.offer(offer("x"), new Noted());
    const { router } = running.decider;
    await vi.waitFor(() => expect(router.accounting.unfinished).toBe(1));
    await made.close();
    await vi.waitFor(() => expect(router.accounting).toMatchObject({ offered: 1, failed: 1, unfinished: 0 }));
  });

  test("tells of models, readiness and metrics", async () => {
    const running = await startDecider();
    open.push({ close: () => stop(running) });
    const made = await proxy();
    running.decider.directory.setModels("a", ["m"]);
    await vi.waitFor(() => expect(made.models()).toEqual(["m"]));
    expect(made.readiness()).toMatchObject({
      decider: "present",
      policy: "round-robin",
      workers: { ready: 2, total: 2 },
    });
    expect(await made.metricsText()).toContain("warmpath_requests_unfinished");
  });
});

describe("without the decider", () => {
  test("requests are placed by power-of-two, and say so", async () => {
    const running = await startDecider();
    const made = await proxy();
    await stop(running);
    await vi.waitFor(() => expect(made.readiness()).toMatchObject({ decider: "fallback", policy: "power-of-two" }));
    const noted = new Noted();
    made.offer(offer("x"), noted);
    expect(noted.heard).toEqual(["placed by the stand-in"]);
    made.ended("x", { outcome: "completed" });
    expect(noted.heard.at(-1)).toBe("over");
    made.refused("max-streams");
    expect(made.standInAccounting).toMatchObject({ offered: 2, completed: 1, shed: 1, unfinished: 0 });
  });

  test("a request that was waiting is placed, one under way goes on and ends once", async () => {
    const running = await startDecider(1);
    const made = await proxy();
    const [underWay, other, waiting] = [new Noted(), new Noted(), new Noted()];
    made.offer(offer("1"), underWay);
    made.offer(offer("2"), other);
    made.offer(offer("3"), waiting);
    await vi.waitFor(() => expect(running.decider.router.queued).toBe(1));
    await stop(running);
    await vi.waitFor(() => expect(waiting.heard).toEqual(["placed by the stand-in"]));
    made.ended("1", { outcome: "completed", ttftMs: 1 });
    expect(underWay.heard).toEqual(["placed", "over"]);
    made.ended("2", { outcome: "failed", fault: "reset" });
    expect(other.heard).toEqual(["placed", "placed by the stand-in"]);
    for (const id of ["2", "3"]) made.ended(id, { outcome: "completed" });
    expect(made.standInAccounting).toMatchObject({ offered: 3, completed: 3, unfinished: 0 });
  });

  test("a request whose client has left while it waited is asked of nobody else", async () => {
    const running = await startDecider(1);
    const made = await proxy();
    const waiting = new Noted();
    for (const id of ["1", "2"]) made.offer(offer(id), new Noted());
    made.offer(offer("3"), waiting);
    await vi.waitFor(() => expect(running.decider.router.queued).toBe(1));
    const stopped = stop(running);
    made.ended("3", { outcome: "cancelled", fault: "client-left" });
    await stopped;
    await vi.waitFor(() => expect(made.readiness().decider).toBe("fallback"));
    expect(waiting.heard).toEqual(["over"]);
    expect(made.standInAccounting).toMatchObject({ offered: 1, cancelled: 1, unfinished: 0 });
  });

  test("a stream that is cut goes on all the same", async () => {
    const running = await startDecider();
    const made = await proxy();
    const noted = new Noted();
    made.offer(offer("x"), noted);
    await vi.waitFor(() => expect(noted.heard).toEqual(["placed"]));
    made.firstToken("x");
    await stop(running);
    await vi.waitFor(() => expect(made.readiness().decider).toBe("fallback"));
    const continuation = { promptTokens: 9, sequence: new Uint32Array(0), blocks: 0 };
    made.ended("x", { outcome: "failed", fault: "reset", ttftMs: 1, continuation });
    made.ended("x", { outcome: "completed", ttftMs: 1 });
    expect(noted.heard).toEqual(["placed", "placed by the stand-in", "over"]);
    expect(made.standInAccounting).toMatchObject({ offered: 1, completed: 1, unfinished: 0 });
  });

  test("it decides again as soon as it is back, and is told what was done without it", async () => {
    const first = await startDecider();
    const made = await proxy();
    await stop(first);
    await vi.waitFor(() => expect(made.readiness().decider).toBe("fallback"));
    made.offer(offer("x"), new Noted());
    made.ended("x", { outcome: "completed" });
    const second = await startDecider();
    open.push({ close: () => stop(second) });
    await vi.waitFor(() => expect(made.readiness().decider).toBe("present"));
    const noted = new Noted();
    made.offer(offer("y"), noted);
    await vi.waitFor(() => expect(noted.heard).toEqual(["placed"]));
    await vi.waitFor(async () =>
      expect(await made.metricsText()).toContain('warmpath_stand_in_requests{account="completed"} 1'),
    );
  });

  test("what was done is counted once, however often the way to it is lost", async () => {
    const running = await startDecider();
    const way = await wayTo(path);
    open.push({ close: () => stop(running) }, way);
    const made = new FailoverDecider({ path: way.path, blockTokens: 16 });
    open.push(made);
    await made.ready;
    const lost = async (): Promise<void> => {
      way.cut();
      await vi.waitFor(() => expect(made.readiness().decider).toBe("fallback"));
    };
    const found = async (): Promise<void> => {
      await vi.waitFor(() => expect(made.readiness().decider).toBe("present"));
    };
    await lost();
    made.offer(offer("x"), new Noted());
    made.ended("x", { outcome: "completed" });
    await found();
    await vi.waitFor(async () => expect(await running.decider.metricsText()).toContain(ONE_COMPLETED));
    await lost();
    await found();
    // A second report by the same proxy has come when what it was asked after that is answered.
    expect(await made.metricsText()).toContain(ONE_COMPLETED);
    expect(await running.decider.metricsText()).toContain(ONE_COMPLETED);
  });
});

const ONE_COMPLETED = 'warmpath_stand_in_requests{account="completed"} 1\n';

/** A way to a socket that can be cut, and is open again at once for whoever comes then. */
async function wayTo(target: string): Promise<{ path: string; cut(): void; close(): Promise<void> }> {
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(target);
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on("error", () => {}).on("close", () => [near, far].forEach((end) => end.destroy()));
    }
    near.pipe(far).pipe(near);
  });
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
    sockets.clear();
  };
  server.listen(join(folder, "way.sock"));
  await once(server, "listening");
  const close = async (): Promise<void> => {
    const closed = once(server, "close");
    server.close();
    cut();
    await closed;
  };
  return { path: join(folder, "way.sock"), cut, close };
}
