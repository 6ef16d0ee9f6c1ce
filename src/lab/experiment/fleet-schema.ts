import { z } from "zod";
import { ADMISSION_MODES } from "../../core/admission/types.ts";
import { POLICIES } from "../../core/policy/registry.ts";
import { GPUS } from "../../sim/timing/gpus.ts";
import { MODELS } from "../../sim/timing/models.ts";
import { distinct, MOST_TOKENS, MOST_WORKERS, spread } from "./limits.ts";
import type { Arm, FleetConfig } from "./types.ts";

const atLeastOne = z.int().min(1);
const positive = z.number().gt(0);
const format = z.enum(["bf16", "fp8"]);
const model = z.enum(MODELS.map(({ name }) => name));
const fraction = positive.max(1);
const workerCount = atLeastOne.max(MOST_WORKERS);
const workers = z.union([workerCount.transform((count) => [count]), distinct(workerCount)], {
  error: `must be a whole number, 1 to ${MOST_WORKERS}, or a list of different ones`,
});

const engine = z.strictObject({
  profile: z.enum(["vllm", "trtllm", "sglang"]),
  version: z.string().default(""),
  maxSequences: atLeastOne.optional(),
  maxTokensPerStep: atLeastOne.optional(),
  chunkedPrefill: z.boolean().default(true),
  prefixReuse: z.boolean().default(true),
  eager: z.boolean().default(false),
  batchWaitSteps: z.int().min(0).optional(),
  batchWaitTokensRatio: z.number().min(0).max(1).optional(),
});

const memory = z.strictObject({
  poolRule: z.enum(["of-total", "of-free"]).optional(),
  hbmBytes: positive.optional(),
  weightBytes: positive.optional(),
  draftWeightBytes: positive.optional(),
  overheadBytes: z.number().min(0).optional(),
  activationPeakBytes: z.number().min(0).optional(),
  tokensPerSequence: atLeastOne.optional(),
});

const speculation = z
  .strictObject({
    model,
    weights: format.default("fp8"),
    kv: format.default("fp8"),
    drafts: z.int().min(1).max(16).default(3),
    acceptanceMean: positive.lt(1).default(0.7),
    acceptanceDeviation: spread.default(0.1),
  })
  .check(({ value: { acceptanceMean: mean, acceptanceDeviation: deviation }, issues }) => {
    // A Beta distribution cannot be wider than a coin that falls with the same mean.
    const widest = Math.sqrt(mean * (1 - mean));
    if (deviation < widest) return;
    const message = `must be less than ${widest.toFixed(3)} with an acceptanceMean of ${mean}`;
    issues.push({ code: "custom", message, path: ["acceptanceDeviation"], input: deviation });
  });

/** The `fleet` of an experiment file. */
export const fleetSchema: z.ZodType<FleetConfig> = z.strictObject({
  model,
  gpu: z.enum(GPUS.map(({ name }) => name)),
  tensorParallel: atLeastOne.default(1),
  workers,
  engine,
  weights: format.default("bf16"),
  kv: format.default("bf16"),
  blockTokens: atLeastOne.max(MOST_TOKENS),
  memoryFraction: fraction.default(0.9),
  kvPoolTokens: atLeastOne.optional(),
  memory: memory.default({}),
  speculation: speculation.optional(),
});

const admission = z
  .strictObject({
    mode: z.enum(ADMISSION_MODES).default("engine"),
    watermarks: z
      .strictObject({
        batchSlotsFraction: positive.optional(),
        prefillTokens: atLeastOne.optional(),
        prefillStepFraction: positive.optional(),
        kvBlocksFraction: positive.optional(),
      })
      .optional(),
    queue: z.strictObject({ maxRequests: atLeastOne, maxWaitSeconds: positive }).optional(),
  })
  .check(({ value, issues }) => {
    for (const [name, isUseless] of [
      ["watermarks", value.mode === "engine"],
      ["queue", value.mode !== "queue"],
    ] as const) {
      if (!isUseless || value[name] === undefined) continue;
      issues.push({ code: "custom", message: `has no effect with mode ${value.mode}`, path: [name], input: value });
    }
  });

/** One of the `arms` of an experiment file. */
export const armSchema: z.ZodType<Arm> = z.strictObject({
  name: z.string().regex(/^[a-z0-9][a-z0-9.-]*$/, { error: "must be made of a-z, 0-9, dots and hyphens" }),
  policy: z.enum(POLICIES.map(({ name }) => name)),
  parameters: z
    .record(z.string(), z.union([z.number(), z.string()], { error: "must be a number or a text" }))
    .default({}),
  admission: admission.prefault({}),
  fleet: z
    .strictObject({
      tensorParallel: atLeastOne.optional(),
      workers: workers.optional(),
      memoryFraction: fraction.optional(),
      kvPoolTokens: atLeastOne.optional(),
    })
    .optional(),
  jitter: z.boolean().optional(),
});
