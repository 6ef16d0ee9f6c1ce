import type { Cell } from "../../../../lab/experiment/cells.ts";
import { fleetMemory } from "../../../../lab/experiment/memory.ts";
import type { Arm, FleetConfig } from "../../../../lab/experiment/types.ts";
import { readSettings as readGatewaySettings, type GatewaySettings } from "../../gateway/settings.ts";

/** The workers of a local fleet; plain data, for other processes. */
export interface WorkersPlan {
  readonly fleet: FleetConfig;
  readonly names: readonly string[];
  readonly tokensPerSequence: number;
  readonly seed: number;
}

/** Where a worker of a local fleet is. */
export interface LocalWorker {
  readonly name: string;
  readonly url: string;
  readonly limits: { readonly poolBlocks: number; readonly maxSequences: number; readonly maxTokensPerStep: number };
}

/** The index is paged, and pages of short runs are not full; as on the twin. */
const INDEX_BLOCKS_PER_POOL_BLOCK = 2;
const WATERMARKS = ["batchSlotsFraction", "prefillTokens", "prefillStepFraction", "kvBlocksFraction"] as const;

/** The workers of a cell, under the names that they have on the twin. */
export function workersPlan({ fleet, level, seeds }: Cell, tokensPerSequence: number): WorkersPlan {
  const names = Array.from({ length: level.workers }, (_, at) => `worker-${at}`);
  return { fleet, names, tokensPerSequence, seed: seeds.engine };
}

/** The settings of a gateway that routes as the arm's router does on the twin. */
export function gatewaySettings(
  { arm, fleet, level, seeds }: Cell,
  workers: readonly LocalWorker[],
  tokensPerSequence: number,
): GatewaySettings {
  const { poolBlocks } = fleetMemory(fleet, tokensPerSequence);
  const settings = readGatewaySettings({
    port: 0,
    adminPort: 0,
    worker: workers.map(({ name, url, limits }) =>
      [
        `${name}=${url}`,
        `kv-blocks=${limits.poolBlocks}`,
        `batch-slots=${limits.maxSequences}`,
        `step-tokens=${limits.maxTokensPerStep}`,
      ].join(","),
    ),
    policy: arm.policy,
    set: Object.entries(arm.parameters).map(([name, value]) => `${name}=${value}`),
    eventPlane: "http",
    ...admissionSettings(arm),
    maxWorkers: level.workers,
    indexBlocks: INDEX_BLOCKS_PER_POOL_BLOCK * poolBlocks * level.workers,
    records: "summary",
    seed: seeds.policy,
    drainSeconds: 0,
  });
  return { ...settings, blockTokens: fleet.blockTokens, tokenizer: "word" };
}

function admissionSettings({ admission: { mode, watermarks, queue } }: Arm): object {
  return {
    admission: mode,
    // Those that the arm does not name are off, as on the twin, and not what a gateway would take by itself.
    ...(watermarks !== undefined && {
      watermark: WATERMARKS.map((name) => `${name}=${watermarks[name] ?? "off"}`),
    }),
    ...(queue !== undefined && { queueRequests: queue.maxRequests, queueSeconds: queue.maxWaitSeconds }),
  };
}
