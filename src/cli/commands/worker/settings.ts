import { z } from "zod";
import { workerName } from "../../../planes/discovery/parts/worker-schema.ts";
import { GPUS } from "../../../sim/timing/gpus.ts";
import { MODELS, type NumberFormat, findModel } from "../../../sim/timing/models.ts";
import { inputProblem } from "../../input-problem.ts";
import { NATS_URL } from "../../nats-option.ts";

/** Options may be written on the command line, where all is text, or in a file of the engine's, where it is not. */
const numberOf = (schema: z.ZodType<number>): z.ZodType<number> =>
  z.preprocess((value) => (typeof value === "string" && value.trim() !== "" ? Number(value) : value), schema);

const atLeastOne = numberOf(z.int().min(1));
const fraction = numberOf(z.number().gt(0).max(1));
const format = z.enum(["bf16", "fp8"]);
const text = z.string().min(1);
const address = z.url({ protocol: /^https?$/ });

const cards = GPUS.map(({ name }) => name);
const known = MODELS.map(({ name }) => name).join(", ");
const model = text.refine((name) => findModel(name) !== undefined, {
  error: `is not a known model; there are ${known}`,
});

/** Every setting of `warmpath worker`, under the names that TensorRT-LLM and Dynamo give them; `--help` is made from this. */
const settingsSchema = z.strictObject({
  modelPath: model.default("llama-3.1-8b").describe("model, by name or path, such as Llama-3.1-70B-Instruct-FP8"),
  servedModelName: text.optional().describe("name that clients use; that of --model-path unless told"),
  engine: z
    .enum(["vllm", "trtllm", "sglang"])
    .default("vllm")
    .describe("whose scheduler and cache: vllm, trtllm, sglang"),
  gpu: z
    .enum(cards)
    .default("h200")
    .describe(`card it runs on: ${cards.join(", ")}`),
  tensorParallelSize: atLeastOne.default(1).describe("cards it is split over"),
  quantization: format.optional().describe("format of weights, bf16 or fp8; fp8 if the model's name says so"),
  maxBatchSize: atLeastOne.optional().describe("requests in a step at most; the engine's own limit unless told"),
  maxNumTokens: atLeastOne.optional().describe("tokens in a step at most; the engine's own limit unless told"),
  maxSeqLen: atLeastOne.default(32_768).describe("prompt and answer together at most"),
  maxQueueSize: numberOf(z.int().min(0)).optional().describe("requests that may wait; any number unless told"),
  kvBlockSize: atLeastOne.optional().describe("tokens in a KV block; 16 unless told, with trtllm 32"),
  kvCacheDtype: z.enum(["auto", "bf16", "fp8"]).default("auto").describe("format of the KV cache: auto, bf16, fp8"),
  freeGpuMemoryFraction: fraction
    .default(0.9)
    .describe("memory for the engine: of all there is or, with trtllm, of what is free"),
  kvPoolTokens: atLeastOne.optional().describe("the KV pool itself, instead of what the memory gives"),
  enableChunkedPrefill: z.boolean().default(true).describe("compute long prompts in chunks beside answers"),
  enableBlockReuse: z.boolean().default(true).describe("reuse what is cached of a prompt"),
  disableOverlapScheduler: z.boolean().default(false).describe("schedule a step only when the one before has ended"),
  speculativeModel: model.optional().describe("draft model on the same cards"),
  numSpeculativeTokens: numberOf(z.int().min(1).max(16)).default(3).describe("drafts in a step"),
  speculativeAcceptance: numberOf(z.number().gt(0).lt(1))
    .default(0.7)
    .describe("mean share of drafts that are accepted"),
  speculativeAcceptanceDeviation: numberOf(z.number().min(0).lt(0.5))
    .optional()
    .describe("how far that share differs between requests; 0.1 unless told, less where the mean is near 0 or 1"),
  publishEventsAndMetrics: z.boolean().default(true).describe("publish KV events and load over HTTP"),
  eventBufferMaxSize: numberOf(z.int().min(0))
    .default(0)
    .describe("serve so many past events at /kv_cache_events, as TensorRT-LLM does; 0 serves none"),
  eventPlane: z
    .union([z.literal("http"), z.string().regex(NATS_URL)], { error: "must be http or nats://HOST:PORT" })
    .default("http")
    .describe("publish KV events and load over NATS too, with nats://HOST:PORT"),
  requestPlane: z
    .union([z.enum(["http", "nats"]), z.string().regex(NATS_URL)], { error: "must be http, nats or nats://HOST:PORT" })
    .default("http")
    .describe("take requests over NATS too: nats (the event plane's server) or nats://HOST:PORT"),
  natsPrefix: text.default("warmpath").describe("first part of all subjects on NATS; one for each fleet"),
  register: address.optional().describe("announce itself to the admin listener of a gateway, under a lease"),
  advertise: address.optional().describe("where others reach this worker; the address it listens on unless told"),
  leaseSeconds: numberOf(z.number().min(1).max(3600)).default(10).describe("how long the announcement holds by itself"),
  name: workerName.optional().describe("name among workers; worker-PORT unless told"),
  host: text.default("127.0.0.1").describe("address to listen on"),
  port: numberOf(z.int().min(0).max(65_535)).default(8001).describe("port to listen on; 0 takes any"),
  tokenizer: text
    .default("word")
    .describe("its tokens: word, or a path to tokenizer.json or the folder it lies in with its chat template"),
  answerTokens: atLeastOne.default(128).describe("length of answers to requests without max_tokens"),
  speed: numberOf(z.number().gt(0).max(1000)).default(1).describe("how much faster than real time it runs"),
  seed: numberOf(z.int().min(0)).default(0).describe("seed of what is drawn, such as accepted drafts"),
  maxBodyMegabytes: numberOf(z.number().gt(0).max(1024)).default(64).describe("larger bodies are refused"),
  drainSeconds: numberOf(z.number().min(0).max(3600)).default(30).describe("time for answers to end after SIGTERM"),
  debug: z.boolean().optional().describe("serve /debug; on if it listens on the loopback address, unless told"),
});

/** The flags of a worker with all defaults in place. */
export interface WorkerSettings {
  readonly name?: string | undefined;
  readonly host: string;
  readonly port: number;
  readonly modelPath: string;
  readonly servedModelName?: string | undefined;
  readonly engine: "vllm" | "trtllm" | "sglang";
  readonly gpu: string;
  readonly tensorParallelSize: number;
  readonly quantization?: NumberFormat | undefined;
  readonly maxBatchSize?: number | undefined;
  readonly maxNumTokens?: number | undefined;
  readonly maxSeqLen: number;
  readonly maxQueueSize?: number | undefined;
  readonly kvBlockSize?: number | undefined;
  readonly kvCacheDtype: "auto" | NumberFormat;
  readonly freeGpuMemoryFraction: number;
  readonly kvPoolTokens?: number | undefined;
  readonly enableChunkedPrefill: boolean;
  readonly enableBlockReuse: boolean;
  readonly disableOverlapScheduler: boolean;
  readonly speculativeModel?: string | undefined;
  readonly numSpeculativeTokens: number;
  readonly speculativeAcceptance: number;
  readonly speculativeAcceptanceDeviation?: number | undefined;
  readonly publishEventsAndMetrics: boolean;
  readonly eventBufferMaxSize: number;
  readonly eventPlane: string;
  readonly requestPlane: string;
  readonly natsPrefix: string;
  readonly tokenizer: string;
  readonly answerTokens: number;
  /** Simulated seconds in a real one. */
  readonly speed: number;
  readonly seed: number;
  readonly maxBodyMegabytes: number;
  readonly drainSeconds: number;
  readonly register?: string | undefined;
  readonly advertise?: string | undefined;
  readonly leaseSeconds: number;
  readonly debug?: boolean | undefined;
}

/** Reads flags, or throws with one line that names the first that cannot be used. */
export function readSettings(flags: Readonly<Record<string, unknown>>): WorkerSettings {
  const { data, error } = settingsSchema.safeParse(flags);
  if (error === undefined) return data;
  const named = Object.fromEntries(Object.entries(flags).map(([name, value]) => [flagOf(name), value]));
  const issues = error.issues.map((issue) => ({ ...issue, path: issue.path.map((part) => flagOf(String(part))) }));
  throw inputProblem(new z.ZodError(issues), named, "see warmpath worker --help");
}

/** A setting's name as it is written on the command line. */
function flagOf(name: string): string {
  return `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** The settings with what is said about each, for help and reference. */
export function settingKeys(): readonly {
  readonly flag: string;
  readonly about: string;
  readonly isSwitch: boolean;
  readonly default: string | number | boolean | undefined;
}[] {
  return Object.entries(settingsSchema.shape).map(([key, schema]) => ({
    flag: flagOf(key),
    about: schema.description ?? "",
    isSwitch: schema.safeParse(true).success,
    default: schema.safeParse(undefined).data,
  }));
}
