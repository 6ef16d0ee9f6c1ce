/** `npm run chaos -- [--seed N] [--seeds M] [--migrate]`: leads fleets through the troubles of M seeds from N on. */
import { parseArgs } from "node:util";
import { ACCOUNTS, type Accounting } from "../../src/core/accounts.ts";
import { NatsServer } from "../support/nats-server.ts";
import { type ChaosPlan, repetition, survive } from "./survival.ts";

const { values } = parseArgs({
  options: {
    seed: { type: "string", default: "1" },
    seeds: { type: "string", default: "1" },
    migrate: { type: "boolean", default: false },
  },
});
const first = Number(values.seed);

for (let seed = first; seed < first + Number(values.seeds); seed++) {
  const problem = await run({ seed, migrates: values.migrate });
  if (problem === undefined) continue;
  console.log(`seed ${seed}: ${problem}`);
  process.exitCode = 1;
}

/** Runs a plan and says how it went; what is wrong, if anything. */
async function run(plan: ChaosPlan): Promise<string | undefined> {
  const nats = await NatsServer.start({
    skip: (note) => {
      throw new Error(note);
    },
  });
  try {
    const { turns, gateway, client, broken, migrated } = await survive(plan, nats);
    console.log(
      `seed ${plan.seed}: ${turns.join(", ")}\n  ${inWords(gateway)}; ${broken} streams broke, ${migrated} migrated`,
    );
    if (inWords(gateway) !== inWords(client)) return `the client counts ${inWords(client)}; again: ${repetition(plan)}`;
    return plan.migrates && broken > 0 ? `streams broke; again: ${repetition(plan)}` : undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    await nats.close();
  }
}

function inWords(accounting: Accounting): string {
  const ends = ACCOUNTS.filter((account) => accounting[account] > 0).map(
    (account) => `${accounting[account]} ${account}`,
  );
  return `${accounting.offered} offered: ${ends.join(", ")}`;
}
