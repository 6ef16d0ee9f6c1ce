import { NS_PER_MS, type Nanoseconds } from "../clock.ts";
import type { LoadColumns } from "../replica.ts";
import { type BusyKnob, busyReason, pressure } from "./busy.ts";
import { DEFAULT_RETRY_AFTER_MS } from "./retry-after.ts";
import type { QueueLimits, ShedReason, Watermarks } from "./types.ts";

/** Every candidate is busy; undefined if one is not. The reason is that of the candidate closest to its watermark. */
export function overloadedReason(
  candidates: ArrayLike<number>,
  count: number,
  columns: LoadColumns,
  watermarks: Watermarks,
  retryAfterMs: number,
): ShedReason | undefined {
  let least: BusyKnob | undefined;
  let sameKnob = true;
  for (let i = 0; i < count; i++) {
    const busy = busyReason(candidates[i], columns, watermarks);
    if (busy === undefined) return undefined;
    if (least !== undefined && busy.knob !== least.knob) sameKnob = false;
    if (least === undefined || pressure(busy) < pressure(least)) least = busy;
  }
  if (least === undefined) return undefined;
  const { knob, value, threshold } = least;
  const comparison = `${format(least, value)} ≥ ${format(least, threshold)}`;
  const reached = sameKnob ? knob : "a watermark";
  const evidence = `${amount(least)} (${sameKnob ? "" : `${knob} `}${comparison})`;
  const message =
    count === 1
      ? `the only worker is at or above ${knob}: it has ${evidence}`
      : `all ${count} workers are at or above ${reached}: the least loaded has ${evidence}`;
  return { code: "overloaded", knob, value, threshold, retryAfterMs, message };
}

/** The central queue has no place, and nothing in it may be displaced. */
export function queueFullReason(waiting: number, limits: QueueLimits, retryAfterMs: number): ShedReason {
  const threshold = limits.maxRequests;
  const message = `the queue is full: ${waiting} requests wait and maxRequests is ${threshold}`;
  return { code: "queue-full", knob: "maxRequests", value: waiting, threshold, retryAfterMs, message };
}

/** A request of a higher priority took the place in a full queue. */
export function displacedReason(
  priority: number,
  byPriority: number,
  limits: QueueLimits,
  retryAfterMs: number,
): ShedReason {
  const { maxRequests } = limits;
  const message =
    `the queue is full (maxRequests is ${maxRequests}) and a request of priority ${byPriority} took the place of this ` +
    `one of priority ${priority}`;
  return { code: "queue-full", knob: "maxRequests", value: maxRequests, threshold: maxRequests, retryAfterMs, message };
}

/** The request's own deadline passed before a worker was free; `allowedNs` is what it left when the request came. */
export function deadlineReason(waitedNs: Nanoseconds, allowedNs: Nanoseconds, retryAfterMs: number): ShedReason {
  const message = `no worker was free by the request's deadlineNs: ${waited(waitedNs, allowedNs)}`;
  return { code: "deadline", knob: "deadlineNs", value: waitedNs, threshold: allowedNs, retryAfterMs, message };
}

/** The request waited as long as the queue allowed when it came. */
export function queueTimeoutReason(waitedNs: Nanoseconds, allowedNs: Nanoseconds, retryAfterMs: number): ShedReason {
  const message = `no worker was free within maxWaitNs: ${waited(waitedNs, allowedNs)}`;
  return { code: "queue-timeout", knob: "maxWaitNs", value: waitedNs, threshold: allowedNs, retryAfterMs, message };
}

/** Filters left no candidate at all, which load has nothing to do with. */
export function noEligibleWorkerReason(workers: number): ShedReason {
  const message =
    workers === 0
      ? "no worker is in the fleet: eligibleWorkers is 0 and must be at least 1"
      : `none of ${workers} workers may take the request: eligibleWorkers is 0 and must be at least 1`;
  const retryAfterMs = DEFAULT_RETRY_AFTER_MS;
  return { code: "no-eligible-worker", knob: "eligibleWorkers", value: 0, threshold: 1, retryAfterMs, message };
}

function amount({ knob, used, capacity }: BusyKnob): string {
  if (knob === "batchSlotsFraction") return `${used} of ${capacity} slots in use`;
  if (knob === "kvBlocksFraction") return `${used} KV blocks that no two share in a pool of ${capacity}`;
  if (knob === "prefillStepFraction") return `${used} prefill tokens pending for steps of ${capacity}`;
  return `${used} prefill tokens pending`;
}

function waited(waitedNs: Nanoseconds, allowedNs: Nanoseconds): string {
  return `waited ${(waitedNs / NS_PER_MS).toFixed(0)} ms and the limit is ${(allowedNs / NS_PER_MS).toFixed(0)} ms`;
}

function format({ knob }: BusyKnob, value: number): string {
  return knob === "prefillTokens" ? value.toFixed(0) : value.toFixed(2);
}
