import { describe, expect, it } from "vitest";
import { NS_PER_MS } from "../clock.ts";
import { createLoadColumns } from "../load/load-columns.ts";
import {
  deadlineReason,
  displacedReason,
  noEligibleWorkerReason,
  overloadedReason,
  queueFullReason,
  queueTimeoutReason,
} from "./shed-reason.ts";
import type { QueueLimits } from "./types.ts";

const LIMITS: QueueLimits = { maxRequests: 8, maxWaitNs: 2_000 * NS_PER_MS };

function threeReplicas(): ReturnType<typeof createLoadColumns> {
  const columns = createLoadColumns(3);
  columns.batchSlots.fill(64);
  columns.kvBlocks.fill(1_000);
  columns.stepTokens.fill(8_192);
  columns.inFlight.set([70, 64, 66]);
  return columns;
}

describe("overloadedReason", () => {
  it("names knob, value and threshold of the least loaded", () => {
    expect(overloadedReason([0, 1, 2], 3, threeReplicas(), { batchSlotsFraction: 1 }, 400)).toEqual({
      code: "overloaded",
      knob: "batchSlotsFraction",
      value: 1,
      threshold: 1,
      retryAfterMs: 400,
      message:
        "all 3 workers are at or above batchSlotsFraction: " +
        "the least loaded has 64 of 64 slots in use (1.00 ≥ 1.00)",
    });
  });

  it("says so when workers are busy for different reasons", () => {
    const columns = threeReplicas();
    columns.inFlight[1] = 3;
    columns.newBlocks[1] = 950;
    const reason = overloadedReason([0, 1], 2, columns, { batchSlotsFraction: 1, kvBlocksFraction: 0.9 }, 400);
    expect(reason?.message).toBe(
      "all 2 workers are at or above a watermark: " +
        "the least loaded has 950 KV blocks that no two share in a pool of 1000 (kvBlocksFraction 0.95 ≥ 0.90)",
    );
  });

  it("speaks of a single worker as one, and of prefill in tokens", () => {
    const columns = threeReplicas();
    columns.pendingPrefillTokens[0] = 65_536;
    expect(overloadedReason([0], 1, columns, { prefillTokens: 50_000 }, 400)?.message).toBe(
      "the only worker is at or above prefillTokens: it has 65536 prefill tokens pending (65536 ≥ 50000)",
    );
    expect(overloadedReason([0], 1, columns, { prefillStepFraction: 4 }, 400)?.message).toBe(
      "the only worker is at or above prefillStepFraction: " +
        "it has 65536 prefill tokens pending for steps of 8192 (8.00 ≥ 4.00)",
    );
  });

  it("has none while one candidate is free, or without candidates", () => {
    const columns = threeReplicas();
    columns.inFlight[2] = 0;
    expect(overloadedReason([0, 1, 2], 3, columns, { batchSlotsFraction: 1 }, 400)).toBeUndefined();
    expect(overloadedReason([], 0, columns, { batchSlotsFraction: 1 }, 400)).toBeUndefined();
  });
});

describe("the queue's reasons", () => {
  it.each([
    [queueFullReason(8, LIMITS, 500), "the queue is full: 8 requests wait and maxRequests is 8"],
    [
      displacedReason(0, 5, LIMITS, 500),
      "the queue is full (maxRequests is 8) and a request of priority 5 took the place of this one of priority 0",
    ],
    [
      deadlineReason(300 * NS_PER_MS, 250 * NS_PER_MS, 500),
      "no worker was free by the request's deadlineNs: waited 300 ms and the limit is 250 ms",
    ],
    [
      queueTimeoutReason(2_000 * NS_PER_MS, 2_000 * NS_PER_MS, 500),
      "no worker was free within maxWaitNs: waited 2000 ms and the limit is 2000 ms",
    ],
  ])("%o", (reason, message) => {
    expect(reason.message).toBe(message);
    expect(reason.retryAfterMs).toBe(500);
    expect(message).toContain(reason.knob);
    expect(reason.value).toBeGreaterThanOrEqual(reason.threshold);
  });

  it("tells an empty fleet from one without an eligible worker", () => {
    expect(noEligibleWorkerReason(0).message).toBe(
      "no worker is in the fleet: eligibleWorkers is 0 and must be at least 1",
    );
    expect(noEligibleWorkerReason(4)).toMatchObject({ code: "no-eligible-worker", value: 0, threshold: 1 });
  });
});
