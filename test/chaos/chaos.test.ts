import { afterEach, describe, expect, test } from "vitest";
import { Rng } from "../../src/core/rng.ts";
import { NatsServer } from "../support/nats-server.ts";
import type { GatewayUnderTest } from "../support/running-gateway.ts";
import { SteadyLoad } from "./clients.ts";
import { FragileWorker, indexedBlocks, startImpatientGateway } from "./fleet.ts";

const CLIENTS = 8;
/** Requests that must complete while a fault lasts: the gateway keeps serving. */
const SERVED_MEANWHILE = 15;
const PATIENCE = { timeout: 30_000, interval: 50 };
const SEEDS = (process.env["WARMPATH_CHAOS_SEEDS"] ?? "1").split(",").map(Number);

interface Trouble {
  readonly name: string;
  begin(): Promise<void>;
  end(): Promise<void>;
}

describe("a fleet of four in trouble", () => {
  const workers: FragileWorker[] = [];
  let nats: NatsServer | undefined;
  let gateway: GatewayUnderTest | undefined;

  afterEach(async () => {
    await gateway?.close();
    for (const worker of workers.splice(0)) await worker.close();
    await nats?.close();
  });

  for (const seed of SEEDS) {
    test(`keeps serving, accounts for everything and knows every cache again; WARMPATH_CHAOS_SEEDS=${seed}`, async (context) => {
      const server = await NatsServer.start(context);
      nats = server;
      expect(await survive(seed, server)).toEqual({ live: 4 });
    });
  }

  /** How far the index can be trusted for each worker in the end. */
  async function survive(seed: number, server: NatsServer): Promise<object> {
    for (const name of ["a", "b", "c", "d"]) workers.push(await FragileWorker.start(name, server));
    gateway = await startImpatientGateway(workers, server);
    const { decider } = gateway;
    await expect.poll(() => decider.readiness().workers.ready, PATIENCE).toBe(4);
    const rng = new Rng(seed);
    const load = new SteadyLoad(gateway.url, CLIENTS, rng.stream("load"));
    await load.moreCompleted(SERVED_MEANWHILE);

    for (const trouble of shuffled(troublesOf(workers, server), rng.stream("order"))) {
      await trouble.begin();
      await load.moreCompleted(SERVED_MEANWHILE);
      await trouble.end();
      await load.moreCompleted(SERVED_MEANWHILE);
    }
    await load.stop();

    const { accounting } = decider.router;
    const { offered, ...ends } = accounting;
    expect(Object.values(ends).reduce((sum, count) => sum + count, 0)).toBe(offered);
    const { sent, completed, refused, broken } = load.counts;
    expect({ offered, completed: accounting.completed }).toEqual({ offered: sent, completed });
    expect(completed + refused + broken).toBe(sent);

    for (const worker of workers) {
      await expect
        .poll(
          async () =>
            indexedBlocks(gateway as GatewayUnderTest, worker.name).join() === (await worker.cachedBlocks()).join(),
          PATIENCE,
        )
        .toBe(true);
      expect((await worker.cachedBlocks()).length).toBeGreaterThan(0);
    }
    return decider.readiness().index;
  }
});

function troublesOf([a, b, c, d]: readonly FragileWorker[], nats: NatsServer): Trouble[] {
  return [
    { name: "killed", begin: () => a.kill(), end: () => a.live() },
    { name: "hung", begin: () => b.turn({ hang: "engine" }), end: () => b.turn({ hang: null }) },
    { name: "slow", begin: () => c.turn({ slow: 20 }), end: () => c.turn({ slow: null }) },
    { name: "cut off", begin: () => d.cutOffEvents(), end: () => d.reconnectEvents() },
    { name: "NATS restarted", begin: () => nats.stop(), end: () => nats.again() },
  ];
}

function shuffled<T>(all: readonly T[], rng: Rng): T[] {
  const left = [...all];
  return all.map(() => left.splice(rng.below(left.length), 1)[0]);
}
