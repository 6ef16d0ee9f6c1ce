import type { Accounting } from "../../src/core/accounts.ts";
import { Rng } from "../../src/core/rng.ts";
import type { NatsServer } from "../support/nats-server.ts";
import type { GatewayUnderTest } from "../support/running-gateway.ts";
import { until } from "../support/until.ts";
import { SteadyLoad } from "./clients.ts";
import { FragileWorker, indexedBlocks, isInUse, migrationsOf, startImpatientGateway, streamsOn } from "./fleet.ts";
import { mingled, oneByOne, shuffled, type Trouble, type Turn } from "./schedule.ts";

const NAMES = ["a", "b", "c", "d"];
const CLIENTS = 8;
const SLOWER = 20;
/** Requests that are served before the first trouble and after the last. */
const SERVED_IN_PEACE = 15;

export interface ChaosPlan {
  readonly seed: number;
  /**
   * Whether streams that lose their worker are continued on another. That happens once to each, so troubles then come one
   * by one: a stream that loses its second worker too may break.
   */
  readonly migrates: boolean;
}

/** What the books say after a run, the gateway's and the client's. */
export interface Survival {
  /** The turns in words, as they were taken. */
  readonly turns: readonly string[];
  readonly gateway: Accounting;
  readonly client: Accounting;
  /** Streams that clients saw break, and streams that went on elsewhere instead. */
  readonly broken: number;
  readonly migrated: number;
}

interface Fleet {
  readonly workers: readonly FragileWorker[];
  readonly nats: NatsServer;
  readonly gateway: GatewayUnderTest;
  readonly load: SteadyLoad;
}

/** The command that runs a plan again. */
export function repetition({ seed, migrates }: ChaosPlan): string {
  return `npm run chaos -- --seed ${seed}${migrates ? " --migrate" : ""}`;
}

/**
 * Leads a fleet of four through the troubles of a seed under steady load. Throws, with the command that repeats it, if the
 * gateway stops serving, if a worker does not come back, or if the index does not end up equal to every worker's own cache.
 */
export async function survive(plan: ChaosPlan, nats: NatsServer): Promise<Survival> {
  const { seed, migrates } = plan;
  const workers: FragileWorker[] = [];
  let gateway: GatewayUnderTest | undefined;
  let load: SteadyLoad | undefined;
  try {
    const rng = new Rng(seed);
    for (const name of NAMES) workers.push(await FragileWorker.start(name, nats));
    const running = await startImpatientGateway(workers, nats, { migrateStreams: migrates });
    gateway = running;
    await until("all workers are ready", () => workers.every(({ name }) => isInUse(running, name)));
    load = new SteadyLoad(gateway.url, CLIENTS, rng.stream("load"));
    await load.moreCompleted(SERVED_IN_PEACE, "in peace");
    const fleet = { workers: shuffled(workers, rng.stream("roles")), nats, gateway, load };
    const turns = await take((migrates ? oneByOne : mingled)(rng.stream("schedule")), fleet);
    await recover(fleet);
    const { sent, accounts, broken } = load;
    const client = { offered: sent, ...accounts };
    const migrated = await migrationsOf(gateway);
    return { turns, gateway: gateway.decider.router.accounting, client, broken, migrated };
  } catch (cause) {
    throw new Error(`${cause instanceof Error ? cause.message : String(cause)}; again: ${repetition(plan)}`, {
      cause,
    });
  } finally {
    // Workers first: whoever waits for an answer of theirs gets an error instead.
    for (const worker of workers) await worker.close();
    await load?.stop().catch(() => undefined);
    await gateway?.close();
  }
}

/** Takes the turns of a schedule, each when enough has been served since the last. */
async function take(schedule: readonly Turn[], fleet: Fleet): Promise<string[]> {
  const taken: string[] = [];
  const acts = actsOf(fleet);
  for (const { trouble, begins, afterMore } of schedule) {
    await fleet.load.moreCompleted(afterMore, `after ${taken.at(-1) ?? "the start"}`);
    await (begins ? acts[trouble].begin() : acts[trouble].end());
    taken.push(`${trouble} ${begins ? "begins" : "ends"}`);
  }
  return taken;
}

interface Act {
  begin(): Promise<void>;
  end(): Promise<void>;
}

function actsOf({ workers: [killed, hung, slow, cutOff], nats, gateway }: Fleet): Record<Trouble, Act> {
  // A trouble that hits nobody is none, and neither is one that ends before it was noticed.
  const busy = (name: string): Promise<void> => until(`${name} has a stream`, () => streamsOn(gateway, name) > 0);
  const noticed = (name: string): Promise<void> => until(`${name} is given up`, () => !isInUse(gateway, name));
  return {
    killed: {
      begin: async () => {
        await busy(killed.name);
        await killed.kill();
      },
      end: async () => {
        await noticed(killed.name);
        await killed.live();
      },
    },
    hung: {
      begin: async () => {
        await busy(hung.name);
        hung.hang();
      },
      end: async () => {
        await noticed(hung.name);
        hung.goOn();
      },
    },
    slow: { begin: () => slow.slow(SLOWER), end: () => slow.slow(1) },
    "cut off": { begin: () => cutOff.cutOffEvents(), end: () => cutOff.reconnectEvents() },
    "no broker": { begin: () => nats.stop(), end: () => nats.again() },
  };
}

/** Waits until all is as before: everybody serves, nobody waits, and what is known of caches is what is in them. */
async function recover({ workers, gateway, load }: Fleet): Promise<void> {
  await until("all workers are ready again", () => workers.every(({ name }) => isInUse(gateway, name)));
  await load.moreCompleted(SERVED_IN_PEACE, "after the last trouble");
  await load.stop();
  await until("every index is live", () => gateway.decider.readiness().index["live"] === workers.length);
  for (const worker of workers) {
    await until(`the index equals the cache of ${worker.name}`, async () => {
      const cached = await worker.cachedBlocks();
      return cached.length > 0 && cached.join() === indexedBlocks(gateway, worker.name).join();
    });
  }
}
