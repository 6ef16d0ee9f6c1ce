/** What the timing model needs to know of a card. */
export interface GpuSpec {
  readonly name: string;
  readonly generation: "ampere" | "hopper" | "blackwell";
  readonly bf16FlopsPerSecond: number;
  /** Zero where the card has no FP8 matrix units. */
  readonly fp8FlopsPerSecond: number;
  readonly memoryBytesPerSecond: number;
  /** As the driver reports it, which is what an engine's memory fraction multiplies. */
  readonly memoryBytes: number;
  /** Per direction. */
  readonly nvlinkBytesPerSecond: number;
  readonly pcieBytesPerSecond: number;
  readonly source: string;
}

const DATASHEET = "vendor datasheet, dense rates without sparsity; memory as nvidia-smi reports it";

/** The cards whose timing is known. */
export const GPUS: readonly GpuSpec[] = [
  gpu("a100-40gb", "ampere", 312e12, 0, 1.555e12, 42.5e9, 300e9, 32e9),
  gpu("a100-80gb", "ampere", 312e12, 0, 2.039e12, 85e9, 300e9, 32e9),
  gpu("h100", "hopper", 989e12, 1979e12, 3.35e12, 85.5e9, 450e9, 64e9),
  gpu("h200", "hopper", 989e12, 1979e12, 4.8e12, 150.7e9, 450e9, 64e9),
  gpu("b200", "blackwell", 2250e12, 4500e12, 8e12, 192e9, 900e9, 64e9),
];

function gpu(
  name: string,
  generation: GpuSpec["generation"],
  bf16FlopsPerSecond: number,
  fp8FlopsPerSecond: number,
  memoryBytesPerSecond: number,
  memoryBytes: number,
  nvlinkBytesPerSecond: number,
  pcieBytesPerSecond: number,
): GpuSpec {
  return {
    name,
    generation,
    bf16FlopsPerSecond,
    fp8FlopsPerSecond,
    memoryBytesPerSecond,
    memoryBytes,
    nvlinkBytesPerSecond,
    pcieBytesPerSecond,
    source: DATASHEET,
  };
}

/** Finds a card by name; `h100_sxm`, `H100-SXM` and `h100` are the same card. */
export function findGpu(name: string): GpuSpec | undefined {
  const plain = name
    .toLowerCase()
    .replaceAll("_", "-")
    .replaceAll(/-sxm\d?/g, "");
  return GPUS.find((card) => card.name === plain || card.name === plain.replace(/-(80|141|180|192)gb$/, ""));
}
