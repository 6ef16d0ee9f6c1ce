import { describe, expect, it } from "vitest";
import { findGpu, GPUS } from "./gpus.ts";
import { findModel, kvBytesPerToken, kvBytesPerTokenPerGpu, linearParameters, MODELS } from "./models.ts";

describe("models", () => {
  it("have the linear parameters and KV bytes of their public configurations", () => {
    const table = MODELS.map((model) => [
      model.name,
      Number((linearParameters(model) / 1e9).toFixed(2)),
      kvBytesPerToken(model, "bf16"),
      kvBytesPerToken(model, "fp8"),
    ]);
    expect(table).toEqual([
      ["llama-3.1-8b", 6.98, 131_072, 65_536],
      ["llama-3.1-70b", 68.45, 327_680, 163_840],
      ["qwen3-8b", 6.95, 147_456, 73_728],
      ["qwen3-32b", 31.21, 262_144, 131_072],
    ]);
  });

  it("are found by hub path, and others are not", () => {
    expect(findModel("nvidia/Llama-3.1-8B-Instruct-FP8")?.name).toBe("llama-3.1-8b");
    expect(findModel("Qwen/Qwen3-32B")?.name).toBe("qwen3-32b");
    expect(findModel("Qwen/Qwen3-32")).toBeUndefined();
    expect(findModel("mistralai/Mixtral-8x7B")).toBeUndefined();
  });

  it("split their KV cache among GPUs until the KV heads run out", () => {
    const model = MODELS[1];
    expect(kvBytesPerTokenPerGpu(model, "fp8", 2)).toBe(81_920);
    expect(kvBytesPerTokenPerGpu(model, "fp8", 16)).toBe(kvBytesPerTokenPerGpu(model, "fp8", 8));
  });
});

describe("GPUs", () => {
  it("are found by the names that files and people use", () => {
    expect(
      ["h100_sxm", "H200-SXM", "b200", "A100-SXM4-40GB", "a100_sxm4_80gb"].map((name) => findGpu(name)?.name),
    ).toEqual(["h100", "h200", "b200", "a100-40gb", "a100-80gb"]);
    expect(findGpu("l40s")).toBeUndefined();
  });

  it("are five, of three generations", () => {
    expect(GPUS.map((gpu) => gpu.generation)).toEqual(["ampere", "ampere", "hopper", "hopper", "blackwell"]);
  });
});
