import { WarmpathError } from "../../../core/errors.ts";
import {
  type ClusterAccess,
  type KubernetesDiscoveryOptions,
  openCluster,
  ownCluster,
} from "../../../planes/discovery/kubernetes.ts";
import { MOST_COUNTED, MOST_DP_RANKS } from "../../../planes/discovery/parts/worker-schema.ts";
import type { DiscoveredWorker, WorkerEvents } from "../../../planes/discovery/types.ts";

const NUMBERS: Readonly<Record<string, keyof DiscoveredWorker>> = {
  "dp-ranks": "dpRanks",
  "kv-blocks": "kvBlocks",
  "batch-slots": "batchSlots",
  "step-tokens": "stepTokens",
  "block-tokens": "blockTokens",
};
const WORDS = ["service", "port", "events", "replay", "topic", "namespace", "server"] as const;

/** Reads what follows `kubernetes:`, such as `service=vllm,port=http,events=5557` or `label=app=vllm,port=8000`. */
export function kubernetesOptions(
  written: string,
  environment: Readonly<Record<string, string | undefined>>,
): KubernetesDiscoveryOptions {
  const given = new Map<string, string>();
  const labels: string[] = [];
  for (const part of written.split(",")) {
    const [, key = "", value = ""] = /^([a-z-]+)=(.+)$/.exec(part) ?? [];
    if (key === "label" && /^[^=]+=[^=]*$/.test(value)) labels.push(value);
    else if ((WORDS as readonly string[]).includes(key) || key in NUMBERS) given.set(key, value);
    else {
      const known = ["label (NAME=VALUE)", ...WORDS, ...Object.keys(NUMBERS)].join(", ");
      throw invalid(`${JSON.stringify(part)} is none of ${known}`);
    }
  }
  const service = given.get("service");
  if ((service === undefined) === (labels.length === 0)) throw invalid("give service=NAME or label=NAME=VALUE");
  const port = given.get("port");
  const describe = description(given);
  return {
    access: accessTo(given.get("server"), environment),
    select: service === undefined ? { labels: labels.join(",") } : { service },
    namespace: given.get("namespace"),
    port: port !== undefined && /^\d+$/.test(port) ? portNumber("port", port) : port,
    describe,
  };
}

function accessTo(
  server: string | undefined,
  environment: Readonly<Record<string, string | undefined>>,
): ClusterAccess {
  if (server !== undefined) return openCluster(server);
  const own = ownCluster(environment);
  if (own !== undefined) return own;
  throw invalid("this is not a pod of a cluster; name a server, such as server=http://127.0.0.1:8001 of kubectl proxy");
}

/** What is the same for all workers, and where each one's events are. */
function description(given: ReadonlyMap<string, string>): (host: string, port: number) => Partial<DiscoveredWorker> {
  const facts: Record<string, number> = {};
  for (const [key, field] of Object.entries(NUMBERS)) {
    const value = given.get(key);
    if (value !== undefined) facts[field] = wholeNumber(key, value);
  }
  const eventsAt = eventsOf(given);
  return (host, port) => ({ ...facts, ...(eventsAt !== undefined && { events: eventsAt(host, port) }) });
}

/** `http` and `trtllm` are the worker's own port, as our own workers and TensorRT-LLM have it; a number is a port that speaks ZMQ. */
function eventsOf(given: ReadonlyMap<string, string>): ((host: string, port: number) => WorkerEvents) | undefined {
  const [events, replay, topic] = [given.get("events"), given.get("replay"), given.get("topic")];
  if (events === undefined) {
    if (replay !== undefined || topic !== undefined) throw invalid("replay and topic mean nothing without events");
    return undefined;
  }
  if (events === "http") return (host, port) => ({ url: `http://${host}:${port}` });
  if (events === "trtllm") return (host, port) => ({ url: `trtllm+http://${host}:${port}` });
  const eventsPort = portNumber("events", events);
  const replayPort = replay === undefined ? undefined : portNumber("replay", replay);
  return (host) => ({
    url: `tcp://${host}:${eventsPort}`,
    ...(replayPort !== undefined && { replayUrl: `tcp://${host}:${replayPort}` }),
    ...(topic !== undefined && { topic }),
  });
}

function portNumber(key: string, written: string): number {
  const port = wholeNumber(key, written);
  if (port <= 65_535) return port;
  throw invalid(`${key} must be a port, got ${written}`);
}

function wholeNumber(key: string, written: string): number {
  const most = key === "dp-ranks" ? MOST_DP_RANKS : MOST_COUNTED;
  const value = Number(written);
  if (Number.isSafeInteger(value) && value >= 1 && value <= most) return value;
  throw invalid(`${key} must be a whole number from 1 to ${most}, got ${JSON.stringify(written)}`);
}

function invalid(message: string): WarmpathError {
  return new WarmpathError("WP_INVALID_INPUT", `--discover kubernetes: ${message}`);
}
