import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createLoadColumns } from "../load/load-columns.ts";
import type { LoadColumns } from "../replica.ts";
import { busyKnobs, busyReason, isBusy } from "./busy.ts";
import { DEFAULT_WATERMARKS, type Watermarks } from "./types.ts";

function oneReplica(load: {
  inFlight?: number;
  pendingPrefillTokens?: number;
  newBlocks?: number;
  batchSlots?: number;
  kvBlocks?: number;
  stepTokens?: number;
}): LoadColumns {
  const columns = createLoadColumns(1);
  columns.inFlight[0] = load.inFlight ?? 0;
  columns.pendingPrefillTokens[0] = load.pendingPrefillTokens ?? 0;
  columns.newBlocks[0] = load.newBlocks ?? 0;
  columns.batchSlots[0] = load.batchSlots ?? 0;
  columns.kvBlocks[0] = load.kvBlocks ?? 0;
  columns.stepTokens[0] = load.stepTokens ?? 0;
  return columns;
}

describe("busyReason", () => {
  it("is busy from the threshold on, not only above it", () => {
    const watermarks: Watermarks = { batchSlotsFraction: 1 };
    expect(busyReason(0, oneReplica({ inFlight: 63, batchSlots: 64 }), watermarks)).toBeUndefined();
    expect(busyReason(0, oneReplica({ inFlight: 64, batchSlots: 64 }), watermarks)).toEqual({
      knob: "batchSlotsFraction",
      value: 1,
      threshold: 1,
      used: 64,
      capacity: 64,
    });
  });

  it("ignores watermarks whose capacity is unknown", () => {
    const columns = oneReplica({ inFlight: 10_000, pendingPrefillTokens: 1e9, newBlocks: 1_000_000 });
    for (const watermarks of Object.values(DEFAULT_WATERMARKS)) {
      expect(busyReason(0, columns, watermarks)).toBeUndefined();
      expect(isBusy(0, columns, watermarks)).toBe(false);
    }
    expect(busyReason(0, columns, { prefillTokens: 1_000 })?.knob).toBe("prefillTokens");
  });

  it("names the watermark that is passed the furthest", () => {
    const columns = oneReplica({ inFlight: 11, batchSlots: 10, newBlocks: 180, kvBlocks: 100 });
    const watermarks: Watermarks = { batchSlotsFraction: 1, kvBlocksFraction: 0.9 };
    expect(busyKnobs(0, columns, watermarks).map((busy) => busy.knob)).toEqual([
      "batchSlotsFraction",
      "kvBlocksFraction",
    ]);
    expect(busyReason(0, columns, watermarks)).toMatchObject({ knob: "kvBlocksFraction", value: 1.8, threshold: 0.9 });
  });

  it("is never busy without watermarks", () => {
    expect(isBusy(0, oneReplica({ inFlight: 9, batchSlots: 1 }), {})).toBe(false);
  });

  it("agrees with the fast variant", () => {
    const count = fc.nat({ max: 20 });
    const threshold = fc.option(fc.double({ min: 0, max: 3, noNaN: true }), { nil: undefined });
    fc.assert(
      fc.property(
        fc.record({
          inFlight: count,
          pendingPrefillTokens: count,
          newBlocks: count,
          batchSlots: count,
          kvBlocks: count,
          stepTokens: count,
        }),
        fc.record({
          batchSlotsFraction: threshold,
          prefillTokens: threshold,
          prefillStepFraction: threshold,
          kvBlocksFraction: threshold,
        }),
        (load, watermarks) => {
          const columns = oneReplica(load);
          expect(isBusy(0, columns, watermarks)).toBe(busyReason(0, columns, watermarks) !== undefined);
        },
      ),
      { numRuns: 500 },
    );
  });
});
