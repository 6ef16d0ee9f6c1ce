import { hostname } from "node:os";
import { Registration } from "../../../planes/discovery/registration.ts";
import type { WorkerEvents } from "../../../planes/discovery/types.ts";
import type { EngineLimits } from "../../../sim/engine/profile.ts";
import type { WorkerSettings } from "./settings.ts";

export interface Announced {
  readonly name: string;
  readonly model: string;
  /** Where it listens. */
  readonly url: string;
  readonly limits: EngineLimits;
  /** Blocks that requests can get. */
  readonly kvBlocks: number;
  readonly zmq: { readonly endpoint: string; readonly replayEndpoint: string | undefined } | undefined;
}

/** The worker's entry in a gateway's registry; undefined where no flag asks for one. */
export function announcement(
  settings: WorkerSettings,
  worker: Announced,
  problem: (message: string) => void,
): Registration | undefined {
  const { register: registryUrl, leaseSeconds } = settings;
  if (registryUrl === undefined) return undefined;
  const { name, model, limits, kvBlocks } = worker;
  const url = settings.advertise ?? reachable(worker.url);
  const events = eventsOf(settings, worker, url);
  return new Registration({
    registryUrl,
    leaseSeconds,
    problem,
    worker: {
      name,
      url,
      model,
      kvBlocks,
      batchSlots: limits.maxSequences,
      blockTokens: limits.blockTokens,
      stepTokens: limits.maxTokensPerStep,
      ...(events !== undefined && { events }),
    },
  });
}

/** ZMQ where it is configured, because whoever configured it wants it heard; else HTTP. */
function eventsOf(settings: WorkerSettings, { zmq }: Announced, url: string): WorkerEvents | undefined {
  if (!settings.publishEventsAndMetrics) return undefined;
  if (zmq === undefined) return { url };
  const { hostname: host } = new URL(url);
  const at = (endpoint: string): string => endpoint.replace(/^tcp:\/\/(?:\*|0\.0\.0\.0|\[::\])/, `tcp://${host}`);
  const { endpoint, replayEndpoint } = zmq;
  return { url: at(endpoint), ...(replayEndpoint !== undefined && { replayUrl: at(replayEndpoint) }) };
}

/** An address that listens everywhere is none that others can be told. */
function reachable(url: string): string {
  return url.replace(/\/\/(?:0\.0\.0\.0|\[::\])/, `//${hostname()}`);
}
