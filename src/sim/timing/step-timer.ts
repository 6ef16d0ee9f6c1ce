import { WarmpathError } from "../../core/errors.ts";
import type { GpuSpec } from "./gpus.ts";
import { bytesOf, kvBytesPerTokenPerGpu, linearParameters, type ModelShape, type NumberFormat } from "./models.ts";

/** The constants of one backend, number format and GPU generation; the data file gives each one's source. */
export interface TimingConstants {
  /** Share of the peak matrix rate that linear layers reach when compute-bound. */
  readonly computeEfficiency: number;
  /** Share of the memory bandwidth that reading weights reaches. */
  readonly weightEfficiency: number;
  /** Shortest time of one linear kernel, however small its share of the weights. */
  readonly linearFloorNs: number;
  /** How much longer linear layers take for 17 to 32 tokens, where some kernels have no tile that fits; 1 if not. */
  readonly linearFactorTo32: number;
  /** Share of the BF16 matrix rate that prefill attention reaches. */
  readonly prefillAttentionEfficiency: number;
  /** Share of the memory bandwidth that decode attention reaches on a KV cache of either format. */
  readonly kvReadEfficiencyBf16: number;
  readonly kvReadEfficiencyFp8: number;
  readonly prefillAttentionFixedNs: number;
  readonly decodeAttentionFixedNs: number;
  /** Small kernels of one layer: norms, rotary embedding, activation, quantisation. */
  readonly layerFixedNs: number;
  readonly allReduceFixedNs: number;
  /** What a two-phase all-reduce costs on top, in return for sending less; large messages take it. */
  readonly allReduceTwoPhaseNs: number;
  readonly allReduceEfficiency: number;
  /** Host work that the GPU waits for, per step and per sequence in it. */
  readonly hostStepNs: number;
  readonly hostSequenceNs: number;
  /** Without a CUDA graph a layer takes at least its launches; 0 where decode steps are captured. */
  readonly eagerDecodeLayerNs: number;
  /** The same for steps that compute prompts, which engines rarely capture. */
  readonly eagerPrefillLayerNs: number;
}

/** Everything that fixes the duration of a step, apart from the step itself. */
export interface TimingProfile {
  readonly model: ModelShape;
  readonly gpu: GpuSpec;
  readonly tensorParallel: number;
  readonly weights: NumberFormat;
  readonly kv: NumberFormat;
  readonly constants: TimingConstants;
}

/** One engine step as sums, so that no list is built or walked to time it. */
export interface StepShape {
  /** New prompt tokens of all prefill chunks. */
  prefillTokens: number;
  /** Sum over chunks of new x (cached + new / 2): the query-key pairs that attention computes. */
  prefillPairs: number;
  decodeSequences: number;
  /** Equal to decodeSequences, or that times (drafts + 1) when drafts are verified. */
  decodeTokens: number;
  /** Sum of the context lengths of the decoding sequences. */
  contextTokens: number;
  /** Rows that reach the LM head: decode tokens and chunks that end their prompt. */
  sampledRows: number;
  prefillSequences: number;
}

/** Durations of consecutive decode-only steps: step k (from 0) lasts aPs + k x bPs, for k < validSteps. */
export interface DecodeAffine {
  aPs: number;
  bPs: number;
  validSteps: number;
}

/** Durations are integer picoseconds: fine enough to make decode steps exactly affine, see `step-run.ts`. */
export const PS_PER_NS = 1000;

const MINIMUM_STEP_NS = 1000;
const MEMO_SEQUENCES = 2048;
const HEAD_WEIGHT_EFFICIENCY = 0.8;
const HEAD_COMPUTE_EFFICIENCY = 0.6;
const ELEMENTWISE_EFFICIENCY = 0.7;
/** Writing and rotating 64 query heads of one token, seen as a slope in prefill attention tables. */
const PREFILL_TOKEN_NS_PER_64_HEADS = 20;
const LINEAR_KERNELS_PER_LAYER = 4;

/** Times engine steps by the closed form of docs/accuracy.md; prefill and decode of one step share its linear layers. */
export class StepTimer {
  readonly profile: TimingProfile;
  readonly #linearTokenNs: number;
  readonly #linearFloorSquaredNs: number;
  readonly #prefillFixedNs: number;
  readonly #prefillTokenNs: number;
  readonly #prefillPairNs: number;
  readonly #decodeFixedNs: number;
  readonly #contextTokenPs: number;
  readonly #stepFixedNs: number;
  readonly #tokenNs: number;
  readonly #allReducesTwoPhaseNs: number;
  readonly #allReduceOneShotTokenNs: number;
  readonly #allReduceTwoPhaseTokenNs: number;
  readonly #headWeightSquaredNs: number;
  readonly #headRowNs: number;
  readonly #sequenceNs: number;
  readonly #hostStepNs: number;
  readonly #decodeFloorNs: number;
  readonly #prefillFloorNs: number;
  /** Base duration by batch size; NaN until first asked for. */
  readonly #decodeBasePs: Float64Array = new Float64Array(MEMO_SEQUENCES + 1).fill(Number.NaN);

  constructor(profile: TimingProfile) {
    const { model, gpu, tensorParallel: p, constants: c } = profile;
    this.profile = profile;
    const flops = profile.weights === "fp8" ? gpu.fp8FlopsPerSecond : gpu.bf16FlopsPerSecond;
    if (flops === 0)
      throw new WarmpathError("WP_INVALID_INPUT", `${gpu.name} has no FP8 matrix units; use bf16 weights`);
    if (!Number.isInteger(p) || p < 1)
      throw new WarmpathError("WP_INVALID_INPUT", `tensor parallel must be at least 1, not ${p}`);
    const bandwidth = gpu.memoryBytesPerSecond / 1e9;
    const parameters = linearParameters(model) / p;
    this.#linearTokenNs = (2 * parameters) / ((c.computeEfficiency * flops) / 1e9);
    const weightNs = (parameters * bytesOf(profile.weights)) / (c.weightEfficiency * bandwidth);
    const floorNs = LINEAR_KERNELS_PER_LAYER * model.layers * c.linearFloorNs;
    this.#linearFloorSquaredNs = weightNs * weightNs + floorNs * floorNs;
    this.#prefillFixedNs = model.layers * c.prefillAttentionFixedNs;
    this.#prefillTokenNs = (model.layers * (model.queryHeads / 64) * PREFILL_TOKEN_NS_PER_64_HEADS) / p;
    this.#prefillPairNs =
      (model.layers * 4 * model.queryHeads * model.headDim) /
      p /
      ((c.prefillAttentionEfficiency * gpu.bf16FlopsPerSecond) / 1e9);
    this.#decodeFixedNs = model.layers * c.decodeAttentionFixedNs;
    const kvEfficiency = profile.kv === "fp8" ? c.kvReadEfficiencyFp8 : c.kvReadEfficiencyBf16;
    this.#contextTokenPs = Math.round(
      (kvBytesPerTokenPerGpu(model, profile.kv, p) / (kvEfficiency * bandwidth)) * PS_PER_NS,
    );
    const elementwiseBytes =
      16 * model.hidden + (6 * model.feedForward + 4 * (model.queryHeads + model.kvHeads) * model.headDim) / p;
    const allReduces = p === 1 ? 0 : 2 * model.layers;
    this.#stepFixedNs = model.layers * c.layerFixedNs + allReduces * c.allReduceFixedNs;
    this.#tokenNs = (model.layers * elementwiseBytes) / (ELEMENTWISE_EFFICIENCY * bandwidth);
    // One shot: every GPU reads all others' halves at once. Two phases: reduce-scatter, then all-gather.
    const messageTokenNs = (allReduces * model.hidden * 2) / ((c.allReduceEfficiency * gpu.nvlinkBytesPerSecond) / 1e9);
    this.#allReduceOneShotTokenNs = (p - 1) * messageTokenNs;
    this.#allReduceTwoPhaseTokenNs = ((2 * (p - 1)) / p) * messageTokenNs;
    this.#allReducesTwoPhaseNs = allReduces * c.allReduceTwoPhaseNs;
    const headParameters = (model.vocabulary * model.hidden) / p;
    const headWeightNs = (headParameters * 2) / (HEAD_WEIGHT_EFFICIENCY * bandwidth);
    this.#headWeightSquaredNs = headWeightNs * headWeightNs;
    this.#headRowNs = (2 * headParameters) / ((HEAD_COMPUTE_EFFICIENCY * gpu.bf16FlopsPerSecond) / 1e9);
    this.#sequenceNs = c.hostSequenceNs;
    this.#hostStepNs = c.hostStepNs;
    this.#decodeFloorNs = model.layers * c.eagerDecodeLayerNs;
    this.#prefillFloorNs = model.layers * c.eagerPrefillLayerNs;
  }

  /** Picoseconds that each token of context adds to a decode step. */
  get contextTokenPs(): number {
    return this.#contextTokenPs;
  }

  /** The duration of one step in integer picoseconds. */
  stepPs(step: StepShape): number {
    const contextPs = this.#contextTokenPs * step.contextTokens;
    if (
      step.prefillTokens === 0 &&
      step.decodeTokens === step.decodeSequences &&
      step.sampledRows === step.decodeSequences
    ) {
      return Math.max(
        this.#decodeBase(step.decodeSequences) + contextPs,
        this.#floorPs(this.#decodeFloorNs, step.decodeSequences),
      );
    }
    let ns = this.#sharedNs(step.prefillTokens + step.decodeTokens, step.sampledRows);
    if (step.prefillTokens > 0) {
      ns += this.#prefillFixedNs + this.#prefillTokenNs * step.prefillTokens + this.#prefillPairNs * step.prefillPairs;
    }
    if (step.decodeSequences > 0) ns += this.#decodeFixedNs;
    const sequences = step.prefillSequences + step.decodeSequences;
    const floorNs = step.prefillTokens > 0 ? this.#prefillFloorNs : this.#decodeFloorNs;
    return Math.max(this.#toPs(ns, sequences) + contextPs, this.#floorPs(floorNs, sequences));
  }

  /** The durations of the decode-only steps that follow, while the batch stays as it is; fills and returns `into`. */
  decodeAffine(sequences: number, contextTokens: number, into: DecodeAffine): DecodeAffine {
    const a = this.#decodeBase(sequences) + this.#contextTokenPs * contextTokens;
    const b = this.#contextTokenPs * sequences;
    const floor = this.#floorPs(this.#decodeFloorNs, sequences);
    if (a < floor) {
      into.aPs = floor;
      into.bPs = 0;
      into.validSteps = b === 0 ? Number.POSITIVE_INFINITY : Math.floor((floor - a) / b) + 1;
    } else {
      into.aPs = a;
      into.bPs = b;
      into.validSteps = Number.POSITIVE_INFINITY;
    }
    return into;
  }

  #decodeBase(sequences: number): number {
    const known = sequences <= MEMO_SEQUENCES ? this.#decodeBasePs[sequences] : Number.NaN;
    if (known === known) return known;
    const base = this.#toPs(this.#sharedNs(sequences, sequences) + this.#decodeFixedNs, sequences);
    if (sequences <= MEMO_SEQUENCES) this.#decodeBasePs[sequences] = base;
    return base;
  }

  /** What every token of a step shares: linear layers, small kernels, all-reduce, LM head. */
  #sharedNs(tokens: number, sampledRows: number): number {
    const compute = this.#linearTokenNs * tokens;
    const headCompute = this.#headRowNs * sampledRows;
    const linear = Math.sqrt(compute * compute + this.#linearFloorSquaredNs);
    const allReduce = Math.min(
      this.#allReduceOneShotTokenNs * tokens,
      this.#allReduceTwoPhaseTokenNs * tokens + this.#allReducesTwoPhaseNs,
    );
    return (
      (tokens > 16 && tokens <= 32 ? linear * this.profile.constants.linearFactorTo32 : linear) +
      this.#stepFixedNs +
      this.#tokenNs * tokens +
      allReduce +
      Math.sqrt(headCompute * headCompute + this.#headWeightSquaredNs)
    );
  }

  #toPs(gpuNs: number, sequences: number): number {
    const ns = Math.max(MINIMUM_STEP_NS, gpuNs + this.#hostStepNs + this.#sequenceNs * sequences);
    return Math.round(ns * PS_PER_NS);
  }

  #floorPs(layersNs: number, sequences: number): number {
    return layersNs === 0 ? 0 : Math.round((layersNs + this.#hostStepNs + this.#sequenceNs * sequences) * PS_PER_NS);
  }
}
