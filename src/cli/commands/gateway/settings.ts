import { z } from "zod";
import { ADMISSION_MODES, type AdmissionMode } from "../../../core/admission/types.ts";
import { MOST_INDEX_BLOCKS } from "../../../core/kv-index/block-table.ts";
import { POLICIES } from "../../../core/policy/registry.ts";
import type { RecordDetail } from "../../../core/record/decision-log.ts";
import { DEFAULT_OUTLIERS } from "../../../gateway/health/outlier-detector.ts";
import { DEFAULT_LIMITS } from "../../../gateway/limits.ts";
import { DEFAULT_RETRY_BUDGET } from "../../../gateway/retry-budget.ts";
import { inputProblem } from "../../input-problem.ts";
import { NATS_URL } from "../../nats-option.ts";

/** From flags and the environment everything is text. */
function number(schema: z.ZodType<number>): z.ZodType<number> {
  return z.preprocess((value) => (typeof value === "string" && value.trim() !== "" ? Number(value) : value), schema);
}

function flag(): z.ZodType<boolean> {
  const words: Readonly<Record<string, boolean>> = { true: true, "1": true, false: false, "0": false };
  return z.preprocess(
    (value) => (typeof value === "string" ? (words[value.toLowerCase()] ?? value) : value),
    z.boolean(),
  );
}

/** Entries of a list; in the environment they have spaces between them. */
function list(): z.ZodType<readonly string[]> {
  const entries = (value: unknown): unknown =>
    typeof value === "string" ? value.split(/\s+/).filter((entry) => entry !== "") : value;
  return z.preprocess(entries, z.array(z.string()));
}

const port = (): z.ZodType<number> => number(z.int().min(0).max(65_535));
const count = (most: number = Number.MAX_SAFE_INTEGER): z.ZodType<number> => number(z.int().min(1).max(most));
const seconds = (): z.ZodType<number> => number(z.number().gt(0).max(86_400));
const text = (): z.ZodString => z.string().min(1);

// Memory for these is taken at the start: beyond it a process would die of a wrong digit instead of naming it.
const MOST_WORKERS = 65_536;
const MOST_RECORDS = 1_000_000;
const MOST_PROCESSES = 256;

const policies = POLICIES.map(({ name }) => name);

/** Every setting of `warmpath gateway`: validation, `--help` and the reference are made from this. */
const settingsSchema = z.strictObject({
  host: text().default("127.0.0.1").describe("address to serve on; 0.0.0.0 for every interface"),
  port: port().default(8000).describe("port of the OpenAI API, /health, /ready and /metrics; 0 takes any"),
  adminHost: text().default("127.0.0.1").describe("address of the admin API; any but this machine's own needs a token"),
  adminPort: port().default(8900).describe("port of the admin API; 0 takes any"),
  adminTokenFile: text()
    .optional()
    .describe(
      "file with the token that the admin API asks for; else it is in WARMPATH_ADMIN_TOKEN, or none is asked for",
    ),
  apiKeys: text()
    .optional()
    .describe(
      "file with the API keys that clients need, as warmpath key writes entries for it; read again when it changes",
    ),
  saltByKey: flag().default(false).describe("keep the caches of API keys apart, by a cache_salt for each"),
  upstreamKeyFile: text()
    .optional()
    .describe(
      "file with the key that engines ask for, sent in place of the client's; else it is in WARMPATH_UPSTREAM_KEY, if anywhere",
    ),
  tlsCert: text().optional().describe("certificate and chain in PEM: serves HTTPS; read again when it changes"),
  tlsKey: text().optional().describe("its private key in PEM"),
  publicMetrics: flag().default(true).describe("serve /metrics beside the API; the admin API has it in any case"),
  worker: list()
    .default([])
    .describe(
      "a worker: URL or NAME=URL, then ,key=value for events, replay, topic, dp-ranks, kv-blocks, batch-slots, step-tokens; repeatable",
    ),
  discover: text()
    .optional()
    .describe(
      "find workers: file:PATH, dns:NAME:PORT, srv:NAME, kubernetes:service=NAME or label=NAME=VALUE (then ,key=value), or registration (workers announce themselves to the admin API)",
    ),
  policy: z
    .enum(policies)
    .default("warmpath")
    .describe("who gets a request; warmpath explain --help lists all policies and their knobs"),
  set: list().default([]).describe("a knob of the policy, NAME=VALUE; repeatable"),
  blockTokens: count()
    .optional()
    .describe("tokens in a KV block, as the engines are configured; unless told, what our own workers say, else 16"),
  tokenizer: text()
    .default("auto")
    .describe(
      "auto (our own workers' tokens, else none), none (text chunks), word (simulated workers), vllm+URL or sglang+URL (/tokenize), or a path to tokenizer.json",
    ),
  eventPlane: z
    .union([z.enum(["auto", "http", "zmq", "none"]), z.string().regex(NATS_URL)], {
      error: "must be auto, http, zmq, none or nats://HOST:PORT",
    })
    .default("auto")
    .describe(
      "how KV events come: auto goes by what is known of each worker, zmq does so with ZMQ loaded from the start, http asks workers themselves, nats://HOST:PORT hears our own workers over NATS, none guesses caches",
    ),
  requestPlane: z
    .union([z.enum(["http", "nats"]), z.string().regex(NATS_URL)], {
      error: "must be http, nats or nats://HOST:PORT",
    })
    .default("http")
    .describe(
      "how requests reach workers: http, or for our own workers nats (the event plane's server) or nats://HOST:PORT",
    ),
  peerPlane: z
    .union([z.enum(["none", "nats"]), z.string().regex(NATS_URL)], {
      error: "must be none, nats or nats://HOST:PORT",
    })
    .default("none")
    .describe(
      "how this gateway and others before the same workers tell each other of their requests: none, nats (the event plane's server) or nats://HOST:PORT",
    ),
  natsPrefix: text().default("warmpath").describe("first part of all subjects on NATS; one for each fleet"),
  scrapeLoad: flag()
    .default(true)
    .describe("read load from the /metrics of engines that do not report it with their events"),
  admission: z
    .enum(ADMISSION_MODES)
    .default("queue")
    .describe("when every worker is busy: queue holds requests, shed refuses them, engine passes them on"),
  queueRequests: count().default(1024).describe("requests that may wait in the router"),
  queueSeconds: seconds().default(60).describe("how long one may wait"),
  watermark: list()
    .default([])
    .describe(
      "from where on a worker is busy, NAME=VALUE (batchSlotsFraction, prefillTokens, prefillStepFraction, kvBlocksFraction) or NAME=off; repeatable",
    ),
  maxAttempts: count().default(3).describe("workers a request may be tried on before its first byte"),
  retryBudgetPercent: number(z.number().min(0).max(1000))
    .default(100 * DEFAULT_RETRY_BUDGET.share)
    .describe("retries over all requests, as a share of those that came in the last ten seconds"),
  retryBudgetPerSecond: number(z.number().min(0))
    .default(DEFAULT_RETRY_BUDGET.perSecond)
    .describe("retries a second beside that share, however few requests come"),
  migrateStreams: flag()
    .default(false)
    .describe(
      "continue a stream on another worker, once, if its own is lost; x-warmpath-migrate says it for one request",
    ),
  maxEjectedPercent: number(z.number().min(0).max(100))
    .default(100 * DEFAULT_OUTLIERS.maxEjectedShare)
    .describe("share of the fleet that may be shut out for requests that it answers and fails"),
  maxWorkers: count(MOST_WORKERS).default(256).describe("replicas there is room for"),
  indexBlocks: count(MOST_INDEX_BLOCKS)
    .default(1_048_576)
    .describe("KV blocks the index has room for; its memory is taken at the start"),
  records: z
    .enum(["full", "summary"])
    .default("full")
    .describe("what is kept of decisions: full has all candidates, summary the choice"),
  recordsKept: count(MOST_RECORDS).default(10_000).describe("decisions kept"),
  seed: number(z.int().min(0)).default(0).describe("root of all chance in routing"),
  askUsage: flag().default(true).describe("ask engines for the usage of streams; it is kept from clients that did not"),
  maxBodyMegabytes: number(z.number().gt(0).max(1024)).default(32).describe("largest body"),
  maxStreams: count().default(DEFAULT_LIMITS.maxStreams).describe("requests under way at once, in each process"),
  connectSeconds: seconds()
    .default(DEFAULT_LIMITS.connectMs / 1000)
    .describe("time to reach a worker"),
  firstByteSeconds: seconds()
    .default(DEFAULT_LIMITS.firstByteMs / 1000)
    .describe("time to the first token of a stream"),
  gapSeconds: seconds()
    .default(DEFAULT_LIMITS.gapMs / 1000)
    .describe("time between two chunks of a stream"),
  answerSeconds: seconds()
    .default(DEFAULT_LIMITS.answerMs / 1000)
    .describe("time to a whole answer that is not streamed"),
  clientStallSeconds: seconds()
    .default(DEFAULT_LIMITS.clientStallMs / 1000)
    .describe("how long a client may leave its stream unread"),
  headerSeconds: seconds()
    .default(DEFAULT_LIMITS.headerMs / 1000)
    .describe("how long the headers of a request may take to arrive, or a new connection to send any"),
  requestSeconds: seconds()
    .default(DEFAULT_LIMITS.requestMs / 1000)
    .describe("how long a whole request may take to arrive"),
  maxConnections: count()
    .default(DEFAULT_LIMITS.maxConnections)
    .describe("client connections at once, in each process, whatever they do"),
  maxConnectionsPerAddress: count().optional().describe("of those, from one address; behind a proxy all come from one"),
  drainSeconds: number(z.number().min(0).max(86_400))
    .default(30)
    .describe("time for requests under way to end after SIGTERM"),
  healthSeconds: seconds().default(2).describe("time between two probes of a worker"),
  processes: count(MOST_PROCESSES).default(1).describe("proxy processes; above 1, one more decides for all of them"),
});

/** Settings as they are written: what is left open here is asked of the workers. */
export interface WrittenSettings extends Omit<GatewaySettings, "blockTokens"> {
  readonly blockTokens?: number | undefined;
}

/** The settings of a gateway with all defaults in place. */
export interface GatewaySettings {
  readonly host: string;
  readonly port: number;
  readonly adminHost: string;
  readonly adminPort: number;
  readonly adminTokenFile?: string | undefined;
  readonly apiKeys?: string | undefined;
  readonly saltByKey: boolean;
  readonly upstreamKeyFile?: string | undefined;
  readonly tlsCert?: string | undefined;
  readonly tlsKey?: string | undefined;
  readonly publicMetrics: boolean;
  readonly worker: readonly string[];
  readonly discover?: string | undefined;
  readonly policy: string;
  readonly set: readonly string[];
  readonly blockTokens: number;
  /** Anything but `auto`. */
  readonly tokenizer: string;
  readonly eventPlane: string;
  readonly requestPlane: string;
  readonly peerPlane: string;
  readonly natsPrefix: string;
  readonly scrapeLoad: boolean;
  readonly admission: AdmissionMode;
  readonly queueRequests: number;
  readonly queueSeconds: number;
  readonly watermark: readonly string[];
  readonly maxAttempts: number;
  readonly retryBudgetPercent: number;
  readonly retryBudgetPerSecond: number;
  readonly migrateStreams: boolean;
  readonly maxEjectedPercent: number;
  readonly maxWorkers: number;
  readonly indexBlocks: number;
  readonly records: RecordDetail;
  readonly recordsKept: number;
  readonly seed: number;
  readonly askUsage: boolean;
  readonly maxBodyMegabytes: number;
  readonly maxStreams: number;
  readonly connectSeconds: number;
  readonly firstByteSeconds: number;
  readonly gapSeconds: number;
  readonly answerSeconds: number;
  readonly clientStallSeconds: number;
  readonly headerSeconds: number;
  readonly requestSeconds: number;
  readonly maxConnections: number;
  readonly maxConnectionsPerAddress?: number | undefined;
  readonly drainSeconds: number;
  readonly healthSeconds: number;
  readonly processes: number;
}

/** What was given before defaults, by key. */
export type GivenSettings = Readonly<Record<string, unknown>>;

/** Reads settings, or throws with one line that names the first that cannot be used. */
export function readSettings(given: GivenSettings): WrittenSettings {
  const { data, error } = settingsSchema.safeParse(given);
  if (error !== undefined) throw inputProblem(error, given, "see warmpath gateway --help");
  return data;
}

/** The flag of a setting, without its dashes. */
export function flagName(key: string): string {
  return key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** The keys with what is said about each, for help and reference. */
export function settingKeys(): readonly {
  readonly key: string;
  readonly about: string;
  readonly kind: "list" | "flag" | "value";
  /** As it is shown; empty where there is none. */
  readonly default: string;
}[] {
  return Object.entries(settingsSchema.shape).map(([key, schema]) => {
    const { data } = schema.safeParse(undefined);
    const kind = Array.isArray(data) ? "list" : typeof data === "boolean" ? "flag" : "value";
    const shown = Array.isArray(data) ? data.join(" ") : String(data ?? "");
    return { key, about: schema.description ?? "", kind, default: shown };
  });
}
