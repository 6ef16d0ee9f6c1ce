import type { GpuSpec } from "./gpus.ts";
import type { NumberFormat } from "./models.ts";
import type { TimingConstants } from "./step-timer.ts";

/** One cell of the table: which engine, in which version and number format, on which generation of cards. */
export interface ConstantsCell {
  readonly name: string;
  readonly backend: string;
  /** Start of the backend versions it holds for; empty holds for all that no other cell names. */
  readonly version: string;
  readonly weights: NumberFormat;
  readonly generation: GpuSpec["generation"];
  readonly constants: TimingConstants;
  /** Where each number comes from. */
  readonly sources: Readonly<Record<keyof TimingConstants, string>>;
}

type FittedName =
  | "computeEfficiency"
  | "weightEfficiency"
  | "kvReadEfficiencyBf16"
  | "kvReadEfficiencyFp8"
  | "linearFloorNs"
  | "linearFactorTo32"
  | "layerFixedNs"
  | "allReduceFixedNs"
  | "allReduceTwoPhaseNs"
  | "hostStepNs"
  | "hostSequenceNs"
  | "eagerPrefillLayerNs";

type FittedValues = Pick<TimingConstants, FittedName | "prefillAttentionEfficiency">;

const KERNEL_TABLES = "kernel tables of ai-dynamo/aiconfigurator @095f58a (Apache-2.0)";
const FIT =
  "fitted end to end on the calibration half of the cell's measured rows, inside FIT_BOUNDS of silicon-fit.ts";
const UNUSED = `no measured row of the cell has this KV format; middle of the range in the ${KERNEL_TABLES}`;

/** Constants that no fit moves: the measured rows cannot tell them from those that one does. */
const FIXED = {
  prefillAttentionFixedNs: 25_000,
  decodeAttentionFixedNs: 10_000,
  allReduceEfficiency: 0.6,
  eagerDecodeLayerNs: 0,
} as const;

const FIXED_SOURCES = {
  prefillAttentionEfficiency: `${KERNEL_TABLES}: context attention of 4k to 16k tokens`,
  prefillAttentionFixedNs: `${KERNEL_TABLES}: context attention`,
  decodeAttentionFixedNs: `between 6 and 20 microseconds in the ${KERNEL_TABLES}; one value keeps steps affine`,
  allReduceEfficiency: `${KERNEL_TABLES}: custom all-reduce of 33.5 MB`,
  eagerDecodeLayerNs: "decode steps run in CUDA graphs by default",
} as const;

/** Every cell there is; docs/accuracy.md lists the error of each, on the rows it was fitted on and on the others. */
export const CONSTANTS: readonly ConstantsCell[] = [
  fittedCell("trtllm", "", "fp8", "hopper", ["kvReadEfficiencyBf16"], {
    prefillAttentionEfficiency: 0.7,
    computeEfficiency: 0.663,
    weightEfficiency: 0.81,
    kvReadEfficiencyBf16: 0.82,
    kvReadEfficiencyFp8: 0.95,
    linearFloorNs: 6800,
    linearFactorTo32: 1.05,
    layerFixedNs: 11_600,
    allReduceFixedNs: 5000,
    allReduceTwoPhaseNs: 41_000,
    hostStepNs: 0,
    hostSequenceNs: 0,
    eagerPrefillLayerNs: 784_400,
  }),
  fittedCell("trtllm", "1.0.0", "fp8", "hopper", ["kvReadEfficiencyBf16"], {
    prefillAttentionEfficiency: 0.7,
    computeEfficiency: 0.51,
    weightEfficiency: 0.748,
    kvReadEfficiencyBf16: 0.82,
    kvReadEfficiencyFp8: 0.883,
    linearFloorNs: 5200,
    linearFactorTo32: 1.21,
    layerFixedNs: 8800,
    allReduceFixedNs: 9600,
    allReduceTwoPhaseNs: 12_800,
    hostStepNs: 400_000,
    hostSequenceNs: 22_800,
    eagerPrefillLayerNs: 625_000,
  }),
  fittedCell("trtllm", "", "bf16", "hopper", ["kvReadEfficiencyFp8"], {
    prefillAttentionEfficiency: 0.7,
    computeEfficiency: 0.708,
    weightEfficiency: 0.757,
    kvReadEfficiencyBf16: 0.916,
    kvReadEfficiencyFp8: 0.85,
    linearFloorNs: 6200,
    linearFactorTo32: 1.01,
    layerFixedNs: 16_500,
    allReduceFixedNs: 5000,
    allReduceTwoPhaseNs: 5600,
    hostStepNs: 0,
    hostSequenceNs: 5200,
    eagerPrefillLayerNs: 700_000,
  }),
  fittedCell("trtllm", "", "fp8", "blackwell", ["kvReadEfficiencyBf16"], {
    prefillAttentionEfficiency: 0.7,
    computeEfficiency: 0.521,
    weightEfficiency: 0.746,
    kvReadEfficiencyBf16: 0.82,
    kvReadEfficiencyFp8: 0.715,
    linearFloorNs: 5200,
    linearFactorTo32: 1,
    layerFixedNs: 11_600,
    allReduceFixedNs: 5000,
    allReduceTwoPhaseNs: 60_000,
    hostStepNs: 650_000,
    hostSequenceNs: 0,
    eagerPrefillLayerNs: 662_500,
  }),
  fittedCell("vllm", "", "fp8", "hopper", [], {
    prefillAttentionEfficiency: 0.6,
    computeEfficiency: 0.538,
    weightEfficiency: 0.812,
    kvReadEfficiencyBf16: 0.95,
    kvReadEfficiencyFp8: 0.5,
    linearFloorNs: 5900,
    linearFactorTo32: 1.25,
    layerFixedNs: 14_200,
    allReduceFixedNs: 9700,
    allReduceTwoPhaseNs: 5000,
    hostStepNs: 925_000,
    hostSequenceNs: 10_800,
    eagerPrefillLayerNs: 700_000,
  }),
  fittedCell("vllm", "0.12", "fp8", "hopper", ["kvReadEfficiencyBf16"], {
    prefillAttentionEfficiency: 0.6,
    computeEfficiency: 0.47,
    weightEfficiency: 0.662,
    kvReadEfficiencyBf16: 0.82,
    kvReadEfficiencyFp8: 0.53,
    linearFloorNs: 3100,
    linearFactorTo32: 1.08,
    layerFixedNs: 2000,
    allReduceFixedNs: 5700,
    allReduceTwoPhaseNs: 9000,
    hostStepNs: 900_000,
    hostSequenceNs: 2000,
    eagerPrefillLayerNs: 250_000,
  }),
  fittedCell("vllm", "", "bf16", "hopper", ["kvReadEfficiencyFp8"], {
    prefillAttentionEfficiency: 0.6,
    computeEfficiency: 0.75,
    weightEfficiency: 0.9,
    kvReadEfficiencyBf16: 0.739,
    kvReadEfficiencyFp8: 0.6,
    linearFloorNs: 7300,
    linearFactorTo32: 1.02,
    layerFixedNs: 16_700,
    allReduceFixedNs: 10_000,
    allReduceTwoPhaseNs: 5000,
    hostStepNs: 900_000,
    hostSequenceNs: 23_400,
    eagerPrefillLayerNs: 100_000,
  }),
  fittedCell("vllm", "", "fp8", "blackwell", ["kvReadEfficiencyBf16"], {
    prefillAttentionEfficiency: 0.6,
    computeEfficiency: 0.431,
    weightEfficiency: 0.685,
    kvReadEfficiencyBf16: 0.82,
    kvReadEfficiencyFp8: 0.786,
    linearFloorNs: 3600,
    linearFactorTo32: 1,
    layerFixedNs: 7600,
    allReduceFixedNs: 5400,
    allReduceTwoPhaseNs: 60_000,
    hostStepNs: 1_300_000,
    hostSequenceNs: 15_500,
    eagerPrefillLayerNs: 1_065_600,
  }),
  fittedCell("sglang", "", "fp8", "hopper", ["kvReadEfficiencyBf16"], {
    prefillAttentionEfficiency: 0.6,
    computeEfficiency: 0.584,
    weightEfficiency: 0.6,
    kvReadEfficiencyBf16: 0.82,
    kvReadEfficiencyFp8: 0.5,
    linearFloorNs: 0,
    linearFactorTo32: 1.25,
    layerFixedNs: 2200,
    allReduceFixedNs: 2000,
    allReduceTwoPhaseNs: 5000,
    hostStepNs: 875_000,
    hostSequenceNs: 14_000,
    eagerPrefillLayerNs: 568_800,
  }),
  fittedCell("sglang", "", "bf16", "hopper", ["kvReadEfficiencyFp8"], {
    prefillAttentionEfficiency: 0.6,
    computeEfficiency: 0.75,
    weightEfficiency: 0.9,
    kvReadEfficiencyBf16: 0.748,
    kvReadEfficiencyFp8: 0.6,
    linearFloorNs: 1800,
    linearFactorTo32: 1,
    layerFixedNs: 2000,
    allReduceFixedNs: 10_000,
    allReduceTwoPhaseNs: 5000,
    hostStepNs: 1_487_500,
    hostSequenceNs: 8200,
    eagerPrefillLayerNs: 400_000,
  }),
  {
    ...identity("vllm", "", "bf16", "ampere"),
    constants: {
      computeEfficiency: 0.75,
      weightEfficiency: 0.75,
      linearFloorNs: 4000,
      linearFactorTo32: 1,
      prefillAttentionEfficiency: 0.55,
      kvReadEfficiencyBf16: 0.8,
      kvReadEfficiencyFp8: 0.6,
      prefillAttentionFixedNs: 25_000,
      decodeAttentionFixedNs: 17_000,
      layerFixedNs: 12_000,
      allReduceFixedNs: 25_000,
      allReduceTwoPhaseNs: 20_000,
      allReduceEfficiency: 0.5,
      hostStepNs: 1_500_000,
      hostSequenceNs: 8000,
      eagerDecodeLayerNs: 0,
      eagerPrefillLayerNs: 650_000,
    },
    sources: {
      computeEfficiency: "published A100 study of 2 to 8 workers; kernel tables bound it at 0.81 to 0.85",
      weightEfficiency: `${KERNEL_TABLES}, with room for end-to-end losses`,
      linearFloorNs: "as on Hopper",
      linearFactorTo32: "no such step in the kernel tables",
      prefillAttentionEfficiency: KERNEL_TABLES,
      kvReadEfficiencyBf16: KERNEL_TABLES,
      kvReadEfficiencyFp8: "no measurement",
      prefillAttentionFixedNs: KERNEL_TABLES,
      decodeAttentionFixedNs: KERNEL_TABLES,
      layerFixedNs: "as on Hopper, scaled by the launch rate",
      allReduceFixedNs: `${KERNEL_TABLES}: 24.5 microseconds on two GPUs`,
      allReduceTwoPhaseNs: "as on Hopper",
      allReduceEfficiency: KERNEL_TABLES,
      hostStepNs: "published A100 study",
      hostSequenceNs: "as on Hopper",
      eagerDecodeLayerNs: "decode steps run in CUDA graphs by default; see withoutGraphs",
      eagerPrefillLayerNs: "as the eager decode floor",
    },
  },
];

/**
 * A layer's launches without CUDA graphs: between the 0.6 ms that fits a published A100 study and the 0.73 ms of a 28-layer
 * decoder that takes 22 ms (vllm-project/vllm-omni issue 7960).
 */
const EAGER_LAYER_NS = 650_000;

/** The same engine started with CUDA graphs off. */
export function withoutGraphs(constants: TimingConstants): TimingConstants {
  return { ...constants, eagerDecodeLayerNs: EAGER_LAYER_NS, eagerPrefillLayerNs: EAGER_LAYER_NS };
}

/** The cell of an engine, the longest version that matches first; undefined where there is none. */
export function findConstants(
  backend: string,
  version: string,
  weights: NumberFormat,
  generation: GpuSpec["generation"],
  cells: readonly ConstantsCell[] = CONSTANTS,
): ConstantsCell | undefined {
  let best: ConstantsCell | undefined;
  for (const cell of cells) {
    if (cell.backend !== backend || cell.weights !== weights || cell.generation !== generation) continue;
    if (version.startsWith(cell.version) && (best === undefined || cell.version.length > best.version.length))
      best = cell;
  }
  return best;
}

/** The cell of an engine, or the most similar one there is: another generation first, then another format, then vLLM. */
export function nearestConstants(
  backend: string,
  version: string,
  weights: NumberFormat,
  generation: GpuSpec["generation"],
  cells: readonly ConstantsCell[] = CONSTANTS,
): ConstantsCell {
  const generations = [generation, "hopper", "blackwell", "ampere"] as const;
  for (const name of [backend, "vllm"]) {
    for (const format of [weights, "fp8", "bf16"] as const) {
      for (const cards of generations) {
        const cell = findConstants(name, version, format, cards, cells);
        if (cell !== undefined) return cell;
      }
    }
  }
  return cells[0];
}

function identity(
  backend: string,
  version: string,
  weights: NumberFormat,
  generation: GpuSpec["generation"],
): Pick<ConstantsCell, "name" | "backend" | "version" | "weights" | "generation"> {
  const name = [backend, version, weights, generation].filter((part) => part !== "").join(" ");
  return { name, backend, version, weights, generation };
}

function fittedCell(
  backend: string,
  version: string,
  weights: NumberFormat,
  generation: GpuSpec["generation"],
  unused: readonly FittedName[],
  values: FittedValues,
): ConstantsCell {
  const source = (name: FittedName): string => (unused.includes(name) ? UNUSED : FIT);
  return {
    ...identity(backend, version, weights, generation),
    constants: { ...FIXED, ...values },
    sources: {
      ...FIXED_SOURCES,
      computeEfficiency: source("computeEfficiency"),
      weightEfficiency: source("weightEfficiency"),
      kvReadEfficiencyBf16: source("kvReadEfficiencyBf16"),
      kvReadEfficiencyFp8: source("kvReadEfficiencyFp8"),
      linearFloorNs: source("linearFloorNs"),
      linearFactorTo32: source("linearFactorTo32"),
      layerFixedNs: source("layerFixedNs"),
      allReduceFixedNs: source("allReduceFixedNs"),
      allReduceTwoPhaseNs: source("allReduceTwoPhaseNs"),
      hostStepNs: source("hostStepNs"),
      hostSequenceNs: source("hostSequenceNs"),
      eagerPrefillLayerNs: source("eagerPrefillLayerNs"),
    },
  };
}
