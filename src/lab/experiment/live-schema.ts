import { z } from "zod";
import { MOST_SECONDS } from "./limits.ts";
import type { HookConfig, LiveConfig } from "./types.ts";

/** Faster than this a client would do little else, and a timer can be no longer than some days. */
const LEAST_SAMPLE_SECONDS = 0.01;
const MOST_SAMPLE_SECONDS = 3600;

const address = z.url({ protocol: /^https?$/, error: "must be an address that begins with http:// or https://" });
const command = z.string().min(1);
const worker = z.string().regex(/^(?:[^=/\s]+=)?https?:\/\/\S+$/, { error: "must be URL or NAME=URL" });

const hooks: z.ZodType<HookConfig> = z.strictObject({
  before_arm: command.optional(),
  after_arm: command.optional(),
  after_experiment: command.optional(),
  reset_caches: command.optional(),
  list_workers: command.optional(),
  describe_arm: command.optional(),
});

/** The `live` of an experiment file. */
export const liveSchema: z.ZodType<LiveConfig> = z.strictObject({
  model: z.string().min(1).optional(),
  prompts: z.enum(["chat", "completion"]).optional(),
  body: z.record(z.string(), z.json()).optional(),
  adminUrl: address.optional(),
  workers: z.array(worker).min(1).optional(),
  metrics: z.array(address).min(1).optional(),
  hooks: hooks.optional(),
  order: z.enum(["by-arm", "interleaved"]).optional(),
  readySeconds: z.number().gt(0).max(MOST_SECONDS).optional(),
  sampleSeconds: z.number().min(LEAST_SAMPLE_SECONDS).max(MOST_SAMPLE_SECONDS).optional(),
  differs: z.array(z.string().min(1)).optional(),
  unproven: z.enum(["refuse", "label"]).optional(),
});
