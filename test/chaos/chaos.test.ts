import { afterEach, describe, expect, test } from "vitest";
import type { Accounting } from "../../src/core/accounts.ts";
import { Rng } from "../../src/core/rng.ts";
import { NatsServer } from "../support/nats-server.ts";
import { mingled, oneByOne, TROUBLES, type Trouble, type Turn } from "./schedule.ts";
import { type ChaosPlan, repetition, survive } from "./survival.ts";

const SEEDS = [1, 2, 3];
const MIGRATING_SEEDS = [4, 5];

describe("a fleet of four in trouble", () => {
  let nats: NatsServer | undefined;

  afterEach(() => nats?.close());

  test.for(SEEDS)("keeps serving, accounts for everything, knows every cache again; seed %i", async (seed, context) => {
    nats = await NatsServer.start(context);
    const plan = { seed, migrates: false };
    const { gateway, client, turns } = await survive(plan, nats);
    expect(turns).toHaveLength(2 * TROUBLES.length);
    expectEqualBooks(plan, gateway, client);
  });

  test.for(MIGRATING_SEEDS)(
    "lets no client see a broken stream where streams migrate; seed %i",
    async (seed, context) => {
      nats = await NatsServer.start(context);
      const plan = { seed, migrates: true };
      const { gateway, client, broken, migrated } = await survive(plan, nats);
      expect({ again: repetition(plan), broken }).toEqual({ again: repetition(plan), broken: 0 });
      expect(migrated).toBeGreaterThan(0);
      expectEqualBooks(plan, gateway, client);
    },
  );
});

/** Every request is in exactly one account, and in the one that its client saw it end in. */
function expectEqualBooks(plan: ChaosPlan, gateway: Accounting, client: Accounting): void {
  const { offered, ...ends } = gateway;
  expect(Object.values(ends).reduce((sum, count) => sum + count, 0)).toBe(offered);
  expect({ again: repetition(plan), ...gateway }).toEqual({ again: repetition(plan), ...client });
}

describe("a schedule of troubles", () => {
  test.each([
    ["mingled", mingled],
    ["one by one", oneByOne],
  ])("%s: its seed alone decides it, and whatever begins ends", (_, schedule) => {
    expect(schedule(new Rng(7))).toEqual(schedule(new Rng(7)));
    expect(schedule(new Rng(7))).not.toEqual(schedule(new Rng(8)));
    for (let seed = 0; seed < 100; seed++) {
      const turns = schedule(new Rng(seed));
      expect(turns.filter(({ begins }) => begins).map(({ trouble }) => trouble)).toHaveLength(TROUBLES.length);
      for (const trouble of TROUBLES) expect(begun(turns, trouble)).toEqual([true, false]);
    }
  });

  test("several at a time where they mingle, one at a time where they do not", () => {
    const most = (turns: readonly Turn[]): number => {
      let open = 0;
      return Math.max(...turns.map(({ begins }) => (open += begins ? 1 : -1)));
    };
    expect(most(oneByOne(new Rng(1)))).toBe(1);
    expect(Math.max(...SEEDS.map((seed) => most(mingled(new Rng(seed).stream("schedule")))))).toBeGreaterThan(2);
  });
});

function begun(turns: readonly Turn[], trouble: Trouble): boolean[] {
  return turns.filter((turn) => turn.trouble === trouble).map(({ begins }) => begins);
}
