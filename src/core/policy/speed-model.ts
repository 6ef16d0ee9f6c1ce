import type { PrefillWork } from "../load/prefill-ledger.ts";

/**
 * What engines take time for. A stretch of time on a replica is a sum over these, each with its own number of nanoseconds:
 * steps, sequences in each step, context tokens read in each step, prompt tokens, query-key pairs of prompts, and batches
 * of prompts, which leave the captured graph and pay for their launches.
 */
const SPEED_TERMS = ["step", "sequence", "contextToken", "promptToken", "pair", "promptBatch"] as const;

/** Numbers of the terms, in the order of their names. */
export const STEP = 0;
export const SEQUENCE = 1;
export const CONTEXT_TOKEN = 2;
export const PROMPT_TOKEN = 3;
export const PAIR = 4;
export const PROMPT_BATCH = 5;
/** Behind the terms: how much of the shorter of launching and computing a batch of prompts takes no time of its own. */
export const HIDDEN: number = SPEED_TERMS.length;
export const SPEED_NUMBERS: number = HIDDEN + 1;

/**
 * What is believed before anything is seen, in prompt tokens. The ratios follow from the roofline, which is much alike on
 * all accelerators: reading the weights once takes as long as computing some 200 tokens with them.
 */
const PRIOR_RATIOS = [200, 1.5, 0.0004, 1, 0.000_03, 30] as const;
const PRIOR_PROMPT_TOKEN_NS = 100_000;

/** How wrong the prior may be, as standard deviations: the whole scale, which the first signals settle, and each ratio. */
const SCALE_DEVIATION = 4;
const RATIO_DEVIATION = 0.7;
/** What it takes to launch a batch of prompts does not follow from the accelerator, and may be many times as much. */
const BATCH_DEVIATION = 20;
/** Believed to be hidden before anything is seen, so that it is tried; how far one batch moves that, and what counts as usual for one. */
const HIDDEN_PRIOR = 1;
const HIDDEN_GAIN = 0.2;
const USUAL_GAIN = 0.02;
/** Variance added with each signal, relative, so that a change of speed is followed within some hundred of them. */
const DRIFT = 1e-5;
/** A signal this many deviations off counts as if it were no further. */
const OUTLIER_DEVIATIONS = 3;
/** Coefficients stay within these factors of the scale, however a few odd signals would have them. */
const LEAST_SCALE = 1e-3;
const LEAST_SHARE = 0.1;
const MOST_SHARE = 20;

/** Share of a signal that goes into a replica's own factor, and how many signals come before any does. */
const FACTOR_GAIN = 0.01;
const FACTOR_AFTER = 64;
const FACTOR_LIMIT = 10;
/** How far from 1 the factors of equal replicas stray: so much of any is taken for chance. */
const FACTOR_NOISE = 1.05;

const TERMS = SPEED_TERMS.length;

/** Time to compute prompts, without what it takes to launch them. */
function computeNs(tokens: number, pairs: number, coefficientsNs: ArrayLike<number>): number {
  return tokens * coefficientsNs[PROMPT_TOKEN] + pairs * coefficientsNs[PAIR];
}

/** The share of computing prompts that is not hidden behind their launch. */
function shownShare(launchNs: number, ownNs: number, coefficientsNs: ArrayLike<number>): number {
  return 1 - coefficientsNs[HIDDEN] * Math.min(1, launchNs / ownNs);
}

/**
 * Time of a batch of prompts. An accelerator computes while the next layers are launched, so only the longer of the two counts. How far that
 * goes is learned, because engines differ, and because whatever else comes with every prompt is hidden behind nothing.
 */
export function promptBatchNs(tokens: number, pairs: number, coefficientsNs: ArrayLike<number>): number {
  const launchNs = coefficientsNs[PROMPT_BATCH];
  const ownNs = computeNs(tokens, pairs, coefficientsNs);
  return launchNs + ownNs * shownShare(launchNs, ownNs, coefficientsNs);
}

/** A stretch of time on one replica: what was done in it, and how long it took. */
export interface SpeedSample {
  readonly replica: number;
  readonly steps: number;
  readonly sequences: number;
  readonly contextTokens: number;
  readonly prefill: PrefillWork;
  readonly tookNs: number;
  /** Standard deviation of what the terms do not explain, relative to the time. */
  readonly noise: number;
}

/**
 * How fast replicas compute, learned from the times at which tokens arrive: a Bayesian linear regression over the terms,
 * one for the whole fleet because its engines are alike and know more together, and one factor per replica because some
 * are slower than others. Errors are relative, so that short and long stretches teach alike.
 */
export class SpeedModel {
  readonly #priorNs: Float64Array;
  /** Coefficients and their covariance, in units of the prior. */
  readonly #mean: Float64Array = new Float64Array(TERMS).fill(1);
  readonly #covariance: Float64Array = new Float64Array(TERMS * TERMS);
  readonly #features: Float64Array = new Float64Array(TERMS);
  readonly #gain: Float64Array = new Float64Array(TERMS);
  /** By replica; around 1 in the geometric mean. */
  readonly #factors: number[] = [];
  readonly #coefficientsNs: Float64Array = new Float64Array(SPEED_NUMBERS);
  /** What the shorter part of a batch usually takes. */
  #usualNs = 0;
  #samples = 0;

  /** `priorFactor` slows what is believed at first: 2 is twice as slow. */
  constructor(priorFactor: number) {
    this.#priorNs = Float64Array.from(PRIOR_RATIOS, (ratio) => ratio * PRIOR_PROMPT_TOKEN_NS * priorFactor);
    for (let row = 0; row < TERMS; row++) {
      for (let column = 0; column < TERMS; column++) {
        const ratioDeviation = row === PROMPT_BATCH ? BATCH_DEVIATION : RATIO_DEVIATION;
        this.#covariance[row * TERMS + column] = SCALE_DEVIATION ** 2 + (row === column ? ratioDeviation ** 2 : 0);
      }
    }
    this.#coefficientsNs[HIDDEN] = HIDDEN_PRIOR;
    this.#refresh();
  }

  /** Nanoseconds of each term on a replica of the fleet's usual speed, and the share that is hidden. */
  get coefficientsNs(): Float64Array {
    return this.#coefficientsNs;
  }

  get samples(): number {
    return this.#samples;
  }

  /**
   * How much slower than usual a replica is, as far as that is no chance: among equals the one that happened to look fastest would get
   * more than its share, and nobody would notice, since all of them look alike to within a few percent.
   */
  factor(replica: number): number {
    const seen = this.#seenFactor(replica);
    return seen > 1 ? Math.max(1, seen / FACTOR_NOISE) : Math.min(1, seen * FACTOR_NOISE);
  }

  forget(replica: number): void {
    this.#factors[replica] = 1;
  }

  learn(sample: SpeedSample): void {
    const { replica, tookNs, noise } = sample;
    if (!(tookNs > 0)) return;
    const factor = this.#seenFactor(replica);
    const believedNs = this.#describe(sample) * factor;
    this.#seeHidden(sample.prefill, (tookNs - believedNs) / factor, tookNs / factor);
    this.#regress(tookNs / factor, believedNs / factor, noise);
    this.#refresh();
    this.#samples += 1;
    if (this.#samples > FACTOR_AFTER) this.#follow(replica, tookNs / believedNs, noise);
  }

  #seenFactor(replica: number): number {
    return this.#factors[replica] ?? 1;
  }

  /** Fills the features, in prior time, and returns what the sample should have taken. */
  #describe({ steps, sequences, contextTokens, prefill }: SpeedSample): number {
    const features = this.#features;
    const prior = this.#priorNs;
    const coefficientsNs = this.#coefficientsNs;
    features[STEP] = steps * prior[STEP];
    features[SEQUENCE] = steps * sequences * prior[SEQUENCE];
    features[CONTEXT_TOKEN] = steps * contextTokens * prior[CONTEXT_TOKEN];
    const { tokens, pairs, batches } = prefill;
    const shown =
      tokens > 0
        ? shownShare(batches * coefficientsNs[PROMPT_BATCH], computeNs(tokens, pairs, coefficientsNs), coefficientsNs)
        : 0;
    features[PROMPT_TOKEN] = shown * tokens * prior[PROMPT_TOKEN];
    features[PAIR] = shown * pairs * prior[PAIR];
    features[PROMPT_BATCH] = batches * prior[PROMPT_BATCH];
    let believedNs = 0;
    for (let term = 0; term < TERMS; term++) {
      believedNs += (features[term] / prior[term]) * this.#coefficientsNs[term];
    }
    return believedNs;
  }

  /**
   * If batches whose shorter part is longer than usual take longer than believed, less of it is hidden. What all batches are late by says nothing
   * of that, and is left to the regression.
   */
  #seeHidden({ tokens, pairs, batches }: PrefillWork, lateNs: number, tookNs: number): void {
    if (batches !== 1) return;
    const coefficientsNs = this.#coefficientsNs;
    const shorterNs = Math.min(coefficientsNs[PROMPT_BATCH], computeNs(tokens, pairs, coefficientsNs));
    const longerNs = Math.max(tookNs, tookNs - lateNs);
    const unusual = Math.max(-1, Math.min(1, (shorterNs - this.#usualNs) / longerNs));
    this.#usualNs += USUAL_GAIN * (shorterNs - this.#usualNs);
    const hidden = coefficientsNs[HIDDEN] - HIDDEN_GAIN * unusual * (lateNs / longerNs);
    coefficientsNs[HIDDEN] = Math.max(0, Math.min(1, hidden));
  }

  /**
   * One step of recursive least squares, with errors relative to what was believed or to what was seen, whichever is longer:
   * relative to the shorter, one stretch that the terms explain badly would outweigh a thousand good ones.
   */
  #regress(tookNs: number, believedNs: number, noise: number): void {
    const features = this.#features;
    const mean = this.#mean;
    const covariance = this.#covariance;
    const gain = this.#gain;
    let variance = noise * noise;
    const scaleNs = Math.max(tookNs, believedNs);
    let error = tookNs / scaleNs;
    for (let row = 0; row < TERMS; row++) features[row] /= scaleNs;
    for (let row = 0; row < TERMS; row++) {
      let sum = 0;
      for (let column = 0; column < TERMS; column++) sum += covariance[row * TERMS + column] * features[column];
      gain[row] = sum;
      variance += sum * features[row];
      error -= features[row] * mean[row];
    }
    const limit = OUTLIER_DEVIATIONS * Math.sqrt(variance);
    const step = Math.max(-limit, Math.min(limit, error)) / variance;
    for (let row = 0; row < TERMS; row++) mean[row] += gain[row] * step;
    for (let row = 0; row < TERMS; row++) {
      for (let column = 0; column < TERMS; column++) {
        covariance[row * TERMS + column] -= (gain[row] * gain[column]) / variance;
      }
      covariance[row * TERMS + row] += DRIFT * mean[STEP] * mean[STEP];
    }
  }

  #refresh(): void {
    const mean = this.#mean;
    let sum = 0;
    for (let term = 0; term < TERMS; term++) sum += Math.max(0, mean[term]);
    const scale = Math.max(LEAST_SCALE, sum / TERMS);
    for (let term = 0; term < TERMS; term++) {
      const share = Math.min(MOST_SHARE * scale, Math.max(LEAST_SHARE * scale, mean[term]));
      if (share !== mean[term]) this.#pin(term, share);
      this.#coefficientsNs[term] = share * this.#priorNs[term];
    }
  }

  /**
   * Moves one coefficient to where it may be, and the others with it as far as the data leaves their sum alone: a fleet that is
   * always full cannot tell steps from the sequences in them, and one must not be made cheap without the other made dear.
   */
  #pin(term: number, share: number): void {
    const mean = this.#mean;
    const covariance = this.#covariance;
    const moved = (share - mean[term]) / covariance[term * TERMS + term];
    for (let row = 0; row < TERMS; row++) mean[row] += covariance[row * TERMS + term] * moved;
  }

  /** Moves a replica's factor towards what was seen, and all of them so that the fleet's usual speed stays in the regression. */
  #follow(replica: number, ratio: number, noise: number): void {
    const factors = this.#factors;
    const bounded = Math.max(0.2, Math.min(5, ratio));
    const moved = this.#seenFactor(replica) * bounded ** (FACTOR_GAIN / noise);
    factors[replica] = Math.max(1 / FACTOR_LIMIT, Math.min(FACTOR_LIMIT, moved));
    if (this.#samples % 16 !== 0) return;
    let sum = 0;
    let known = 0;
    for (const factor of factors) {
      if (factor === undefined) continue;
      sum += Math.log(factor);
      known += 1;
    }
    const middle = Math.exp(sum / known);
    for (let at = 0; at < factors.length; at++) if (factors[at] !== undefined) factors[at] /= middle;
  }
}
