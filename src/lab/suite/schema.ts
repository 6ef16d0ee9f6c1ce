import { z } from "zod";
import { POLICIES } from "../../core/policy/registry.ts";
import { fleetSchema } from "../experiment/fleet-schema.ts";
import { distinct, MOST_RUNS, MOST_SESSIONS, MOST_WORKERS } from "../experiment/limits.ts";
import { workloadSchema } from "../experiment/workload-schema.ts";
import type { Suite } from "./types.ts";

/** Times the load that saturates round-robin. */
const MOST_LOAD = 1000;

const atLeastOne = z.int().min(1);
const positive = z.number().gt(0);
const name = z.string().regex(/^[a-z0-9][a-z0-9.-]*$/, { error: "must be made of a-z, 0-9, dots and hyphens" });
const policy = z.enum(POLICIES.map((one) => one.name));

const loads = distinct(positive.max(MOST_LOAD));
const workers = distinct(atLeastOne.max(MOST_WORKERS));
const runs = z.int().min(2).max(MOST_RUNS);
const requests = atLeastOne.max(MOST_SESSIONS);

const size = z.strictObject({ loads, workers, keep: atLeastOne, perturbedEach: z.int().min(0), runs, requests });

const workload = z.strictObject({
  name,
  about: z.string().default(""),
  fleet: name,
  workload: workloadSchema,
  arrivals: z.enum(["poisson", "constant", "burst"]).optional(),
  burstSize: atLeastOne.optional(),
  slo: z
    .strictObject({ ttftMs: positive.optional(), tpotMs: positive.optional(), e2eMs: positive.optional() })
    .default({}),
  sessionSeconds: z.number().min(0).default(0),
  anchored: z.boolean().default(false),
});

const perturbation = z.strictObject({
  name,
  workloads: z.array(name).min(1).optional(),
  prefillSpeed: positive.optional(),
  kvPool: positive.optional(),
  kvEventDelayMs: z.number().min(0).optional(),
  kvEventLossShare: z.number().min(0).max(1).optional(),
  firstWorkerSpeed: positive.optional(),
  speedPriorFactor: positive.optional(),
  routers: atLeastOne.optional(),
});

const tuning = z.strictObject({
  cells: atLeastOne,
  runs,
  requests,
  settings: atLeastOne,
  finalists: atLeastOne,
  rivals: z.array(
    z.strictObject({
      policy,
      grids: z.array(z.record(z.string(), z.array(z.union([z.number(), z.string()])).min(1))).min(1),
    }),
  ),
});

/** A suite file; every object is strict, as in an experiment file. */
export const suiteSchema: z.ZodType<Suite> = z
  .strictObject({
    suite: z.string().min(1),
    about: z.string().default(""),
    seed: z.int().min(0).max(0xffffffff),
    full: size,
    quick: size,
    loads,
    workers,
    parts: z.int().min(2).max(100),
    fleets: z.record(name, fleetSchema),
    workloads: z.array(workload).min(1),
    perturbations: z.array(perturbation).default([]),
    perturbedShare: z.number().min(0).max(1).default(0.1),
    policies: distinct(policy).optional(),
    tunedRivals: z.string().min(1).default("tuned-rivals.yaml"),
    tuning: tuning.optional(),
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

function* contradictions(suite: Suite): Generator<Contradiction> {
  const names = suite.workloads.map((one) => one.name);
  for (const [at, { fleet, workload: asked, arrivals, burstSize }] of suite.workloads.entries()) {
    const path = ["workloads", at];
    if (!Object.hasOwn(suite.fleets, fleet)) yield { path: [...path, "fleet"], message: "is not one of the fleets" };
    if (names.indexOf(names[at]) !== at) yield { path: [...path, "name"], message: "must be unique" };
    if ((arrivals === "burst") !== (burstSize !== undefined)) {
      yield { path: [...path, "burstSize"], message: "must be given exactly if arrivals is burst" };
    }
    if (asked.trace !== undefined && arrivals !== undefined) {
      yield { path: [...path, "arrivals"], message: "does not go with a trace, which has times of its own" };
    }
  }
  const perturbed = suite.perturbations.map((one) => one.name);
  for (const [at, { workloads = [] }] of suite.perturbations.entries()) {
    if (perturbed.indexOf(perturbed[at]) !== at) {
      yield { path: ["perturbations", at, "name"], message: "must be unique" };
    }
    const unknown = workloads.find((one) => !names.includes(one));
    if (unknown !== undefined) {
      yield { path: ["perturbations", at, "workloads"], message: `has ${unknown}, which is not one of the workloads` };
    }
  }
  for (const which of ["full", "quick"] as const) {
    for (const factor of ["loads", "workers"] as const) {
      const all: readonly number[] = suite[factor];
      if (suite[which][factor].some((value) => !all.includes(value))) {
        yield { path: [which, factor], message: `must be some of ${all.join(", ")}` };
      }
    }
  }
}
