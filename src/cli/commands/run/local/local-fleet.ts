import type { Cell } from "../../../../lab/experiment/cells.ts";
import { gatewaySettings, type LocalWorker, workersPlan } from "./fleet-plan.ts";
import { startMember } from "./member.ts";

/** A fleet on this machine, in real time. */
export interface LocalFleet {
  readonly url: string;
  readonly adminUrl: string;
  readonly workers: readonly LocalWorker[];
  close(): Promise<void>;
}

/** Starts the fleet of a cell. */
export type FleetStarter = (cell: Cell, tokensPerSequence: number) => Promise<LocalFleet>;

/** A gateway and workers as processes of their own, so that neither they nor the client wait for each other. */
export const startLocalFleet: FleetStarter = async (cell, tokensPerSequence) => {
  const workers = await startMember<readonly LocalWorker[]>(
    new URL("./workers-process.ts", import.meta.url),
    workersPlan(cell, tokensPerSequence),
  );
  try {
    const gateway = await startMember<{ readonly url: string; readonly adminUrl: string }>(
      new URL("./gateway-process.ts", import.meta.url),
      gatewaySettings(cell, workers.announcement, tokensPerSequence),
    );
    return {
      ...gateway.announcement,
      workers: workers.announcement,
      close: async () => {
        await gateway.close();
        await workers.close();
      },
    };
  } catch (error) {
    await workers.close();
    throw error;
  }
};
