import type { Cell } from "../../../../lab/experiment/cells.ts";
import { flatSettings } from "../../../../lab/live/arm-differences.ts";
import type { LiveTarget, OpenCell } from "../../../../lab/live/target.ts";
import { checkWorkers } from "../../../../lab/preflight/checks.ts";
import { GatewayAdmin } from "../live/gateway-admin.ts";
import { waitForWorkers } from "../live/wait-for-workers.ts";
import { type FleetStarter, type LocalFleet, startLocalFleet } from "./local-fleet.ts";

const READY_SECONDS = 60;

/** A fleet of this machine, started anew for every cell: caches are cold, and no router has learned anything. */
export class LocalTarget implements LiveTarget {
  readonly name = "local";
  readonly order = "interleaved";
  readonly #tokensPerSequence: number;
  readonly #start: FleetStarter;
  #fleet: LocalFleet | undefined;

  constructor(tokensPerSequence: number, start: FleetStarter = startLocalFleet) {
    this.#tokensPerSequence = tokensPerSequence;
    this.#start = start;
  }

  async open(cell: Cell, signal: AbortSignal): Promise<OpenCell> {
    await this.close();
    const fleet = await this.#start(cell, this.#tokensPerSequence);
    this.#fleet = fleet;
    const admin = new GatewayAdmin(fleet.adminUrl);
    const ready = await waitForWorkers(admin, cell.level.workers, READY_SECONDS, signal);
    return {
      url: fleet.url,
      model: cell.fleet.model,
      // Exactly the tokens of the plan, so that the twin and this fleet get the same.
      prompts: "completion",
      body: {},
      workers: fleet.workers.map(({ name }) => name),
      pages: [
        ...fleet.workers.map(({ name, url }) => ({ worker: name, url: `${url}/metrics` })),
        { worker: undefined, url: `${fleet.url}/metrics` },
      ],
      emptiedBy: "restart",
      facts: { arm: cell.arm.name, checks: [checkWorkers(ready, cell.level.workers)], settings: settingsOf(cell) },
      identities: () => admin.identities(),
      eventsApplied: () => admin.eventsApplied(),
      close: () => this.close(),
    };
  }

  async close(): Promise<void> {
    const fleet = this.#fleet;
    this.#fleet = undefined;
    await fleet?.close();
  }
}

/** What the arm is started with; the fleet's size is the level's. */
function settingsOf({ arm, fleet }: Cell): Record<string, string> {
  const { policy, parameters, admission, jitter } = arm;
  const { workers: _, ...engines } = fleet;
  return flatSettings({
    policy: { name: policy, ...parameters },
    admission,
    fleet: engines,
    ...(jitter === undefined ? {} : { jitter }),
  });
}
