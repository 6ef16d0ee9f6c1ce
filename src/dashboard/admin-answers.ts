import { z } from "zod";
import { NS_PER_MS } from "../core/clock.ts";
import type { DecisionView } from "./decision-view.ts";
import type { PolicyChoice, WorkerState, WorkerView } from "./protocol.ts";

/**
 * What is read of a gateway's admin API. Only what the page shows is asked for, so that a gateway of another version is
 * understood as long as it tells that.
 */
const count = z.number();
const text = z.string();

/** A worker as the gateway tells of it. */
interface WorkerAnswer {
  readonly name: string;
  readonly url: string;
  readonly phase: Exclude<WorkerState, "dead">;
  readonly indexState: string;
  readonly modelled: { readonly inFlight: number };
  readonly reported: { readonly running: number; readonly waiting: number; readonly kvUsage: number } | null;
  readonly capacity?: { readonly batchSlots?: number | undefined } | undefined;
}

const workerSchema: z.ZodType<WorkerAnswer> = z.object({
  name: text,
  url: text,
  phase: z.enum(["ready", "catching-up", "unhealthy", "draining"]),
  indexState: text,
  modelled: z.object({ inFlight: count }),
  reported: z.object({ running: count, waiting: count, kvUsage: count }).nullable(),
  capacity: z.object({ batchSlots: count.optional() }).optional(),
});

export const workersSchema: z.ZodType<{ readonly workers: readonly WorkerAnswer[] }> = z.object({
  workers: z.array(workerSchema),
});

const parametersSchema = z.record(text, z.union([count, text]));

const knobSchema = z.union([
  z.object({ kind: z.literal("number"), default: count, minimum: count, maximum: count, about: text }),
  z.object({ kind: z.literal("choice"), default: text, choices: z.array(text), about: text }),
]);

/** The policy in force and those that could be. */
export interface PolicyAnswer {
  readonly policy: string;
  readonly parameters: Readonly<Record<string, number | string>>;
  readonly available: readonly PolicyChoice[];
}

export const policySchema: z.ZodType<PolicyAnswer> = z.object({
  policy: text,
  parameters: parametersSchema,
  available: z.array(z.object({ policy: text, about: text, parameters: z.record(text, knobSchema) })),
});

/** What of a decision is known only afterwards. */
const outcome = { observedCachedTokens: count.optional(), firstTokenNs: count.optional() };

/** A decision in a list. */
export interface ListedDecision {
  readonly decision: number;
  readonly observedCachedTokens?: number | undefined;
  readonly firstTokenNs?: number | undefined;
}

export const decisionsSchema: z.ZodType<{ readonly decisions: readonly ListedDecision[] }> = z.object({
  decisions: z.array(z.object({ decision: count, ...outcome })),
});

export const accountsSchema: z.ZodType<{ readonly queued: number }> = z.object({ queued: count });

const decisionSchema = z.object({
  decision: count,
  request: text,
  policy: text,
  rule: text.nullable(),
  unit: text.nullable(),
  promptTokens: count,
  promptBlocks: count,
  chosen: text.nullable(),
  runnerUp: text.nullable(),
  margin: count.nullable(),
  tied: count,
  refusal: z.object({ code: text }).nullable(),
  queueWaitNs: count,
  predictedCachedTokens: count,
  ...outcome,
  filtered: z.object({ notReady: z.array(text), tried: z.array(text), busy: z.array(text) }),
  candidates: z
    .array(
      z.object({
        replica: text,
        cachedBlocks: count,
        activeBlocks: count,
        inFlight: count,
        cost: count.nullable().optional(),
        terms: z.array(z.object({ name: text, value: count.nullable() })).optional(),
      }),
    )
    .nullable(),
});

/** A worker as the page shows it; rates are not the gateway's to tell. */
export function readWorker(worker: WorkerAnswer): Omit<WorkerView, "sinceMs"> {
  const { reported } = worker;
  return {
    name: worker.name,
    url: worker.url,
    state: worker.phase,
    running: reported?.running ?? worker.modelled.inFlight,
    queued: reported?.waiting ?? null,
    batchSlots: worker.capacity?.batchSlots ?? null,
    kvShare: reported?.kvUsage ?? null,
    hitShare: null,
    requestsPerSecond: null,
    indexState: worker.indexState,
  };
}

/** A decision as the page shows it. */
export function readDecision(answer: unknown): DecisionView {
  const parsed = decisionSchema.parse(answer);
  const { refusal, queueWaitNs, firstTokenNs: _, filtered, candidates, margin, ...decision } = parsed;
  const { promptBlocks } = decision;
  return {
    ...decision,
    ...outcomeOf(parsed),
    margin: margin ?? 0,
    refusal: refusal?.code ?? null,
    queueWaitMs: queueWaitNs / NS_PER_MS,
    filtered: [
      ...filtered.notReady.map((worker) => ({ worker, reason: "not ready" })),
      ...filtered.tried.map((worker) => ({ worker, reason: "tried before" })),
      ...filtered.busy.map((worker) => ({ worker, reason: "busy" })),
    ],
    candidates: (candidates ?? []).map(({ replica, cachedBlocks, activeBlocks, inFlight, cost, terms }) => ({
      worker: replica,
      cachedBlocks,
      prefillBlocks: Math.max(0, promptBlocks - cachedBlocks),
      loadBlocks: activeBlocks,
      inFlight,
      cost: cost ?? null,
      terms: (terms ?? []).flatMap(({ name, value }) => (value === null ? [] : { name, value })),
    })),
  };
}

/** What became of a decision, as far as it is known by now. */
export function outcomeOf(listed: ListedDecision): Pick<DecisionView, "observedCachedTokens" | "ttftMs"> {
  const { observedCachedTokens, firstTokenNs } = listed;
  return {
    observedCachedTokens: observedCachedTokens ?? null,
    ttftMs: firstTokenNs === undefined ? null : firstTokenNs / NS_PER_MS,
  };
}
