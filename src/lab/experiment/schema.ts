import { z } from "zod";
import { armSchema, fleetSchema } from "./fleet-schema.ts";
import { liveSchema } from "./live-schema.ts";
import { LEAST_WINDOW_SECONDS, MOST_RUNS, MOST_SECONDS, MOST_SNAPSHOTS } from "./limits.ts";
import type { Experiment, SignalConfig } from "./types.ts";
import { loadSchema, workloadSchema } from "./workload-schema.ts";

/**
 * The form of an experiment file. Every object is strict: a key that is not known is an error and never ignored, because
 * a misspelt knob would turn an experiment into a repetition of the default.
 */
const seconds = z.number().min(0).max(MOST_SECONDS);
const positive = z.number().gt(0);
const milliseconds = z.number().min(0);
const seed = z.int().min(0).max(0xffffffff);

const channel = z.strictObject({
  delayMs: milliseconds.default(0),
  batchMs: milliseconds.default(0),
  lossShare: z.number().min(0).max(1).default(0),
});

// Four milliseconds of frontend: what a TTFT has beyond the engine's part on documented benchmark runs.
const signals = z.strictObject({
  clientToRouterMs: milliseconds.default(0),
  frontendMs: milliseconds.default(4),
  frontendMicrosPerToken: z.number().min(0).default(0),
  routerToWorkerMs: milliseconds.default(0),
  workerToClientMs: milliseconds.default(0),
  kvEvents: channel.prefault({ delayMs: 5 }),
  firstToken: channel.prefault({ delayMs: 1 }),
  growth: channel.prefault({ delayMs: 1 }),
  ended: channel.prefault({ delayMs: 1 }),
});

/** How signals travel where a file says nothing of it. */
export const STANDARD_SIGNALS: SignalConfig = signals.parse({});

/** An experiment file; reading one fills in the defaults. */
export const experimentSchema: z.ZodType<Experiment> = z
  .strictObject({
    name: z.string().min(1),
    about: z.string().default(""),
    fleet: fleetSchema,
    workload: workloadSchema,
    load: loadSchema,
    arms: z.array(armSchema).min(1),
    warmUpSeconds: seconds.default(0),
    warmUpRequests: z.int().min(0).optional(),
    windowSeconds: z.number().min(LEAST_WINDOW_SECONDS).max(MOST_SECONDS).optional(),
    drainSeconds: seconds.default(120),
    snapshots: z.int().min(0).max(MOST_SNAPSHOTS).default(0),
    runs: z.int().min(1).max(MOST_RUNS).default(1),
    seed: seed.default(1),
    seeds: z
      .strictObject({
        workload: seed.optional(),
        engine: seed.optional(),
        policy: seed.optional(),
        faults: seed.optional(),
      })
      .default({}),
    slo: z
      .strictObject({ ttftMs: positive.optional(), tpotMs: positive.optional(), e2eMs: positive.optional() })
      .default({}),
    cacheState: z.enum(["cold", "primed", "carried-over"]).default("cold"),
    carryOverSeconds: positive.max(MOST_SECONDS).default(300),
    timeoutSeconds: positive.optional(),
    signals: signals.prefault({}),
    live: liveSchema.optional(),
  })
  .check(({ value, issues }) => {
    for (const { path, message } of contradictions(value)) {
      issues.push({ code: "custom", message, path, input: value });
    }
  });

interface Contradiction {
  readonly path: (string | number)[];
  readonly message: string;
}

function* contradictions({ load, workload, arms, windowSeconds, cacheState }: Experiment): Generator<Contradiction> {
  const isTrace = workload.trace !== undefined;
  const isSchedule = load.speed !== undefined;
  if (isSchedule && !isTrace) yield { path: ["load", "speed"], message: "needs workload.trace" };
  if (isTrace && load.rateRps !== undefined) {
    yield { path: ["load", "rateRps"], message: "does not go with workload.trace; use speed or concurrency" };
  }
  if (!isSchedule && windowSeconds === undefined) {
    yield { path: [], message: "must have windowSeconds, because the load has no end of its own" };
  }
  if (isSchedule && cacheState === "carried-over") {
    yield {
      path: ["cacheState"],
      message: "must be cold or primed for a schedule, which has nothing before its beginning",
    };
  }
  if (workload.trace?.jitter === true && !isSchedule) {
    yield { path: ["workload", "trace", "jitter"], message: "needs load.speed: without it rows have no times" };
  }
  const names = new Set<string>();
  for (const [at, { name, jitter }] of arms.entries()) {
    if (names.has(name)) yield { path: ["arms", at, "name"], message: "must be unique among the arms" };
    if (jitter !== undefined && !isSchedule) yield { path: ["arms", at, "jitter"], message: "needs load.speed" };
    names.add(name);
  }
}
