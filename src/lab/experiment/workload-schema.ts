import { z } from "zod";
import { CONVERSATION_PRESETS } from "../../workload/conversation/presets.ts";
import {
  distinct,
  gammaShape,
  MOST_RATE_RPS,
  MOST_SECONDS,
  MOST_SESSIONS,
  MOST_TOKENS,
  spread,
  tokenCount,
  traceSpeed,
} from "./limits.ts";
import type { LoadConfig, WorkloadConfig } from "./types.ts";

const atLeastOne = z.int().min(1);
const positive = z.number().gt(0);
const range = z.tuple([tokenCount, tokenCount], {
  error: `must be two whole numbers, the lower first, each ${MOST_TOKENS} or less`,
});

const conversations = z.strictObject({
  preset: z.enum(CONVERSATION_PRESETS.map(({ name }) => name)).default("multi-turn"),
  starters: atLeastOne.max(MOST_SESSIONS).optional(),
  starterTokens: range.optional(),
  starterSkew: z.number().min(0).optional(),
  openingTokens: range.optional(),
  turns: range.optional(),
  userTokens: range.optional(),
  outputTokensByTurn: z.array(positive.max(MOST_TOKENS)).min(1).optional(),
  outputVariation: spread.optional(),
  outputMaxTokens: atLeastOne.max(MOST_TOKENS).optional(),
  thinkMs: range.optional(),
  tailShare: z.number().min(0).max(1).optional(),
  tailTokens: range.optional(),
  contextTokens: z.int().min(2).optional(),
});

const trace = z.strictObject({
  files: z.array(z.string().min(1)).min(1),
  blockTokens: atLeastOne.default(512),
  filter: z.strictObject({ maxInputTokens: atLeastOne.optional(), maxTotalTokens: atLeastOne.optional() }).optional(),
  slice: z.strictObject({ fromRow: z.int().min(0).optional(), toRow: atLeastOne.optional() }).optional(),
  jitter: z.boolean().default(false),
});

const prefixGroups = z.strictObject({
  groups: atLeastOne.max(MOST_SESSIONS),
  prefixTokens: range,
  skew: z.number().min(0).default(0),
  suffixTokens: range,
  outputTokens: range,
  groupRun: atLeastOne.optional(),
});

/** The `workload` of an experiment file. */
export const workloadSchema: z.ZodType<WorkloadConfig> = z
  .strictObject({
    conversations: conversations.optional(),
    trace: trace.optional(),
    prefixGroups: prefixGroups.optional(),
  })
  .check(({ value, issues }) => exactlyOne(value, ["conversations", "trace", "prefixGroups"], issues));

const sessions = atLeastOne.max(MOST_SESSIONS);
const rate = positive.max(MOST_RATE_RPS);

/** The `load` of an experiment file. */
export const loadSchema: z.ZodType<LoadConfig> = z
  .strictObject({
    concurrency: distinct(sessions).optional(),
    concurrencyPerWorker: distinct(sessions).optional(),
    maxRateRps: rate.optional(),
    rampSeconds: z.number().min(0).max(MOST_SECONDS).optional(),
    rateRps: distinct(rate).optional(),
    arrivals: z.enum(["poisson", "constant", "gamma", "burst"]).optional(),
    gammaShape: gammaShape.optional(),
    burstSize: sessions.optional(),
    speed: distinct(traceSpeed).optional(),
  })
  .check(({ value, issues }) => {
    exactlyOne(value, ["concurrency", "concurrencyPerWorker", "rateRps", "speed"], issues);
    const isClosed = value.concurrency !== undefined || value.concurrencyPerWorker !== undefined;
    const complain = (name: keyof LoadConfig, message: string): void => {
      issues.push({ code: "custom", message, path: [name], input: value });
    };
    for (const name of ["maxRateRps", "rampSeconds"] as const) {
      if (value[name] !== undefined && !isClosed) complain(name, "belongs to concurrency");
    }
    if (value.arrivals !== undefined && value.rateRps === undefined) complain("arrivals", "belongs to rateRps");
    for (const [name, arrivals] of [
      ["gammaShape", "gamma"],
      ["burstSize", "burst"],
    ] as const) {
      if ((value.arrivals === arrivals) === (value[name] !== undefined)) continue;
      complain(name, `must be given exactly if arrivals is ${arrivals}`);
    }
  });

function exactlyOne<Fields extends object>(
  value: Fields,
  names: readonly (keyof Fields & string)[],
  issues: z.core.$ZodRawIssue[],
): void {
  const given = names.filter((name) => value[name] !== undefined);
  if (given.length === 1) return;
  const message = `must have exactly one of ${names.join(", ")}; it has ${given.length === 0 ? "none" : given.join(", ")}`;
  issues.push({ code: "custom", message, path: [], input: value });
}
