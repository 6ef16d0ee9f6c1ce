/** What happens when more comes than the fleet can do: it stays busy, the important goes first, the rest is told to come again. */
import { afterEach, describe, expect, test } from "vitest";
import { type GatewayUnderTest, startTestGateway } from "../../support/running-gateway.ts";
import { type WorkerUnderTest, startTestWorker, words } from "../../support/running-worker.ts";
import { MODEL } from "./program-fleet.ts";

const SLOTS = 4;
const WORKERS = 2;
const CAPACITY = SLOTS * WORKERS;
const QUEUE = 8;
const LOAD = 3 * (CAPACITY + QUEUE);

const open: { close(): Promise<unknown> }[] = [];

afterEach(async () => {
  for (const each of open.splice(0).toReversed()) await each.close();
});

async function startFleet(speed = 50): Promise<{ gateway: GatewayUnderTest; workers: WorkerUnderTest[] }> {
  const workers = await Promise.all(["a", "b"].map((name) => startTestWorker({ name, maxBatchSize: SLOTS, speed })));
  open.push(...workers.map((worker) => ({ close: () => worker.close(0) })));
  const gateway = await startTestGateway({
    worker: workers.map(({ url }, i) => `${"ab"[i]}=${url},batch-slots=${SLOTS}`),
    queueRequests: QUEUE,
    watermark: ["batchSlotsFraction=1"],
    indexBlocks: 65_536,
  });
  open.push(gateway);
  return { gateway, workers };
}

interface Answer {
  readonly name: string;
  readonly status: number;
  readonly code: string | undefined;
  readonly retryAfter: string | null;
}

async function ask(url: string, name: string, headers: Record<string, string> = {}): Promise<Answer> {
  const body = JSON.stringify({ model: MODEL, prompt: words(20, name), max_tokens: 30 });
  const response = await fetch(`${url}/v1/completions`, { method: "POST", body, headers });
  const answer = (await response.json()) as { error?: { code: string } };
  return { name, status: response.status, code: answer.error?.code, retryAfter: response.headers.get("retry-after") };
}

function countOf(answers: readonly Answer[], status: number): number {
  return answers.filter((answer) => answer.status === status).length;
}

describe("three times as much as the fleet and its queue can take", () => {
  test("fills every place, turns the rest away with a reason, and loses nothing", async () => {
    const { gateway, workers } = await startFleet();
    const { router } = gateway.decider;
    const turn = (faults: object): Promise<unknown[]> =>
      Promise.all(workers.map((w) => w.post("/debug/faults", faults)));
    await turn({ hang: "engine" });
    const answers = Array.from({ length: LOAD }, (_, i) => ask(gateway.url, `load${i}`));
    await expect.poll(() => router.accounting.shed, { timeout: 10_000 }).toBe(LOAD - CAPACITY - QUEUE);
    expect([...router.load.columns.inFlight.subarray(0, WORKERS)]).toEqual([SLOTS, SLOTS]);
    expect(router.queued).toBe(QUEUE);
    await turn({ hang: null });
    const all = await Promise.all(answers);
    expect([countOf(all, 200), countOf(all, 429)]).toEqual([CAPACITY + QUEUE, LOAD - CAPACITY - QUEUE]);
    for (const { code, retryAfter } of all.filter(({ status }) => status === 429)) {
      expect([code, Number(retryAfter) >= 1]).toEqual(["queue-full", true]);
    }
    expect(router.accounting).toMatchObject({
      offered: LOAD,
      completed: CAPACITY + QUEUE,
      shed: LOAD - CAPACITY - QUEUE,
      failed: 0,
      rejected: 0,
      unfinished: 0,
    });
  });

  test("lets the important wait in the place of others, and serves it first", async () => {
    const { gateway, workers } = await startFleet();
    const { router } = gateway.decider;
    const turn = (faults: object): Promise<unknown[]> =>
      Promise.all(workers.map((w) => w.post("/debug/faults", faults)));
    await turn({ hang: "engine" });
    const ordinary = Array.from({ length: CAPACITY + QUEUE }, (_, i) => ask(gateway.url, `ordinary${i}`));
    await expect.poll(() => router.queued, { timeout: 10_000 }).toBe(QUEUE);
    const important = Array.from({ length: QUEUE - 2 }, (_, i) =>
      ask(gateway.url, `important${i}`, { "x-warmpath-priority": "5" }),
    );
    await expect.poll(() => router.accounting.shed, { timeout: 10_000 }).toBe(important.length);
    const newest = router.log.nextDecision;
    await turn({ hang: null });
    expect(countOf(await Promise.all(important), 429)).toBe(0);
    expect(countOf(await Promise.all(ordinary), 429)).toBe(important.length);
    // Of all that waited, the important was placed before the rest.
    const placed = router.log.latest(QUEUE).toReversed();
    expect(placed[0].decision).toBe(newest);
    const importantIds = new Set(placed.slice(0, important.length).map(({ request }) => request));
    const waited = placed.slice(important.length).map(({ request }) => request);
    expect(Math.min(...[...importantIds].map(numberOf))).toBeGreaterThan(Math.max(...waited.map(numberOf)));
  });

  test("does not start what its client no longer wants", async () => {
    const { gateway, workers } = await startFleet();
    const { router } = gateway.decider;
    for (const worker of workers) await worker.post("/debug/faults", { hang: "engine" });
    const busy = Array.from({ length: CAPACITY }, (_, i) => ask(gateway.url, `busy${i}`));
    await expect.poll(() => router.accounting.offered).toBe(CAPACITY);
    const impatient = await ask(gateway.url, "impatient", { "x-warmpath-start-within-ms": "1" });
    expect([impatient.status, impatient.code]).toEqual([429, "deadline"]);
    for (const worker of workers) await worker.post("/debug/faults", { hang: null });
    expect(countOf(await Promise.all(busy), 200)).toBe(CAPACITY);
  });

  test("keeps every worker as busy as it can be for as long as it lasts", async () => {
    const { gateway, workers } = await startFleet(2);
    const { router } = gateway.decider;
    const ends: Answer[] = [];
    const waiting: (() => void)[] = [];
    // Three for every place that becomes free: whoever had it sends his next request, and so do two that were refused.
    const client = async (who: number): Promise<void> => {
      while (countOf(ends, 200) < 12 * CAPACITY) {
        const answer = await ask(gateway.url, `steady${who % 7}`);
        ends.push(answer);
        if (answer.status === 200) for (const resolve of waiting.splice(0, 2)) resolve();
        else await new Promise<void>((resolve) => waiting.push(resolve));
      }
      for (const resolve of waiting.splice(0)) resolve();
    };
    await Promise.all(Array.from({ length: LOAD }, (_, i) => client(i)));
    const { offered, completed, shed, unfinished } = router.accounting;
    expect({ completed, shed, unfinished }).toEqual({
      completed: countOf(ends, 200),
      shed: countOf(ends, 429),
      unfinished: 0,
    });
    expect(completed + shed).toBe(offered);
    expect(shed).toBeGreaterThan(0);
    for (const worker of workers) {
      const stats = (await (await worker.get("/debug/engine")).json()) as { maxRunning: number; meanRunning: number };
      // Over its busy time, which begins and ends with an emptier batch.
      expect(stats.maxRunning).toBe(SLOTS);
      expect(stats.meanRunning).toBeGreaterThan(SLOTS / 2);
    }
  });
});

function numberOf(request: string): number {
  return Number(/\d+$/.exec(request)?.[0]);
}
