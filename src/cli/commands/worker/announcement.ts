import { hostname } from "node:os";
import { Registration } from "../../../planes/discovery/registration.ts";
import { SELF_DESCRIPTION_PATH } from "../../../planes/discovery/parts/self-description.ts";
import type { DiscoveredWorker, WorkerEvents } from "../../../planes/discovery/types.ts";
import type { EngineLimits } from "../../../sim/engine/profile.ts";
import { type Routes, respondJson } from "../../../worker/http-reply.ts";
import { ownAdminToken } from "../../secrets.ts";
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
  const url = settings.advertise ?? reachable(worker.url);
  const events = eventsOf(settings, worker, url);
  const described = { ...descriptionOf(worker, url), ...(events !== undefined && { events }) };
  return new Registration({ registryUrl, leaseSeconds, problem, worker: described, token: ownAdminToken() });
}

/** Where whoever asks gets to know what the worker is, under the address that was asked. */
export function selfDescription(settings: WorkerSettings, worker: () => Announced): Routes {
  return {
    [`GET ${SELF_DESCRIPTION_PATH}`]: (request, response) => {
      const asked = worker();
      const url = request.headers.host === undefined ? asked.url : `http://${request.headers.host}`;
      const events = settings.publishEventsAndMetrics ? { events: { url, ...topicOf(settings, asked) } } : {};
      const { tokenizer } = settings;
      respondJson(response, 200, JSON.stringify({ ...descriptionOf(asked, url), ...events, tokenizer }));
    },
  };
}

function descriptionOf({ name, model, limits, kvBlocks }: Announced, url: string): DiscoveredWorker {
  return {
    name,
    url,
    model,
    kvBlocks,
    batchSlots: limits.maxSequences,
    blockTokens: limits.blockTokens,
    stepTokens: limits.maxTokensPerStep,
  };
}

/** ZMQ where it is configured, because whoever configured it wants it heard; else HTTP. */
function eventsOf(settings: WorkerSettings, worker: Announced, url: string): WorkerEvents | undefined {
  if (!settings.publishEventsAndMetrics) return undefined;
  const { zmq } = worker;
  if (zmq === undefined) return { url, ...topicOf(settings, worker) };
  const { hostname: host } = new URL(url);
  const at = (endpoint: string): string => endpoint.replace(/^tcp:\/\/(?:\*|0\.0\.0\.0|\[::\])/, `tcp://${host}`);
  const { endpoint, replayEndpoint } = zmq;
  return { url: at(endpoint), ...(replayEndpoint !== undefined && { replayUrl: at(replayEndpoint) }) };
}

/** On NATS a worker is heard under its own name, whatever a gateway calls it. */
function topicOf({ eventPlane }: WorkerSettings, { name }: Announced): { topic?: string } {
  return eventPlane === "http" ? {} : { topic: name };
}

/** An address that listens everywhere is none that others can be told. */
function reachable(url: string): string {
  return url.replace(/\/\/(?:0\.0\.0\.0|\[::\])/, `//${hostname()}`);
}
