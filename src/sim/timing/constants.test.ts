import { describe, expect, it } from "vitest";
import { FIT_BOUNDS } from "../calibration/silicon-fit.ts";
import { CONSTANTS, findConstants, nearestConstants, withoutGraphs } from "./constants.ts";
import type { TimingConstants } from "./step-timer.ts";

describe("the constants", () => {
  it("each have a source, and the fitted ones lie inside their bounds", () => {
    for (const cell of CONSTANTS) {
      for (const name of Object.keys(cell.constants) as (keyof TimingConstants)[]) {
        expect(cell.sources[name].length, `${cell.name} ${name}`).toBeGreaterThan(8);
        const bound = FIT_BOUNDS.find((one) => one.name === name);
        if (bound === undefined || !cell.sources[name].startsWith("fitted")) continue;
        expect(cell.constants[name], `${cell.name} ${name}`).toBeGreaterThanOrEqual(bound.low);
        expect(cell.constants[name], `${cell.name} ${name}`).toBeLessThanOrEqual(bound.high);
      }
    }
  });

  it("are found by the longest version that matches", () => {
    expect(findConstants("trtllm", "1.0.0rc3", "fp8", "hopper")?.name).toBe("trtllm 1.0.0 fp8 hopper");
    expect(findConstants("trtllm", "1.2.0rc6", "fp8", "hopper")?.name).toBe("trtllm fp8 hopper");
    expect(findConstants("vllm", "0.12.0", "fp8", "hopper")?.name).toBe("vllm 0.12 fp8 hopper");
    expect(findConstants("sglang", "", "bf16", "ampere")).toBeUndefined();
  });

  it("are borrowed from the most similar cell where there is none", () => {
    expect(nearestConstants("sglang", "", "bf16", "ampere").name).toBe("sglang bf16 hopper");
    expect(nearestConstants("vllm", "", "bf16", "blackwell").name).toBe("vllm bf16 hopper");
    expect(nearestConstants("unheard-of", "", "fp8", "hopper").name).toBe("vllm fp8 hopper");
  });

  it("gain a launch floor without CUDA graphs", () => {
    const eager = withoutGraphs(CONSTANTS[0].constants);
    expect(eager.eagerDecodeLayerNs).toBeGreaterThan(0);
    expect(eager.eagerPrefillLayerNs).toBe(eager.eagerDecodeLayerNs);
  });
});
