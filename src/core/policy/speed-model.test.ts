import { describe, expect, it } from "vitest";
import { Rng } from "../rng.ts";
import {
  HIDDEN,
  PAIR,
  PROMPT_BATCH,
  promptBatchNs,
  PROMPT_TOKEN,
  SpeedModel,
  type SpeedSample,
  STEP,
} from "./speed-model.ts";

/** An engine of known speed: nanoseconds of each term. */
const ENGINE = [8e6, 40_000, 60, 25_000, 0.8, 1e6] as const;

function sampleOf(rng: Rng, replica: number, factor = 1): SpeedSample {
  const steps = 1 + rng.below(64);
  const sequences = 1 + rng.below(60);
  const contextTokens = sequences * (500 + rng.below(6_000));
  const tokens = rng.below(3) === 0 ? 0 : rng.below(8_000);
  const prefill = { tokens, pairs: tokens * (tokens / 2 + rng.below(4_000)), batches: tokens > 0 ? 1 : 0 };
  const [step, sequence, context, promptToken, pair, batch] = ENGINE;
  const decodeNs = steps * (step + sequence * sequences + context * contextTokens);
  const promptNs = tokens * promptToken + prefill.pairs * pair + prefill.batches * batch;
  const jitter = 0.9 + 0.2 * rng.uniform();
  const tookNs = (decodeNs + promptNs) * factor * jitter;
  return { replica, steps, sequences, contextTokens, prefill, tookNs, noise: 0.2 };
}

/** Mean relative error of what the model believes of samples it has not seen. */
function errorOf(model: SpeedModel, replica: number, factor = 1): number {
  const rng = new Rng(99);
  let sum = 0;
  for (let i = 0; i < 200; i++) {
    const { steps, sequences, contextTokens, prefill, tookNs } = sampleOf(rng, replica, factor);
    const [step, sequence, context, promptToken, pair, batch] = model.coefficientsNs;
    const decodeNs = steps * (step + sequence * sequences + context * contextTokens);
    const promptNs = prefill.tokens * promptToken + prefill.pairs * pair + prefill.batches * batch;
    sum += Math.abs(((decodeNs + promptNs) * model.factor(replica)) / tookNs - 1);
  }
  return sum / 200;
}

describe("SpeedModel", () => {
  it.each([0.1, 0.5, 1, 2, 10])("has found the speed after a hundred signals from a prior off by %d", (priorFactor) => {
    const model = new SpeedModel(priorFactor);
    const rng = new Rng(1);
    for (let i = 0; i < 100; i++) model.learn(sampleOf(rng, 0));
    expect(errorOf(model, 0)).toBeLessThan(0.12);
    for (let i = 0; i < 2_000; i++) model.learn(sampleOf(rng, i % 3));
    expect(errorOf(model, 0)).toBeLessThan(0.08);
    expect(model.coefficientsNs[PROMPT_TOKEN] / ENGINE[PROMPT_TOKEN]).toBeGreaterThan(0.7);
    expect(model.coefficientsNs[PROMPT_TOKEN] / ENGINE[PROMPT_TOKEN]).toBeLessThan(1.4);
  });

  describe("computing behind a launch of 40 ms", () => {
    const LAUNCH_NS = 40e6;
    const TOKEN_NS = 20_000;

    /** First tokens of prompts with so many tokens to compute, in batches of their own beside twenty that decode. */
    function taught(tokensOf: (rng: Rng) => number, batchNs: (computeNs: number) => number): SpeedModel {
      const model = new SpeedModel(1);
      const rng = new Rng(4);
      for (let i = 0; i < 3_000; i++) {
        const steps = i % 3 === 0 ? 1.5 : 32;
        const tokens = i % 3 === 0 ? tokensOf(rng) : 0;
        const prefill = { tokens, pairs: (tokens * tokens) / 2, batches: tokens > 0 ? 1 : 0 };
        const promptNs = tokens > 0 ? batchNs(tokens * TOKEN_NS) : 0;
        const tookNs = (steps * 4.8e6 + promptNs) * (0.9 + 0.2 * rng.uniform());
        model.learn({ replica: 0, steps, sequences: 20, contextTokens: 20_000, prefill, tookNs, noise: 0.5 });
      }
      return model;
    }
    const believedNs = (model: SpeedModel, tokens: number): number =>
      promptBatchNs(tokens, (tokens * tokens) / 2, model.coefficientsNs);

    it("costs nothing where prompts of all lengths have shown that it does not", () => {
      const model = taught(
        (rng) => 20 + rng.below(6_000),
        (computeNs) => Math.max(LAUNCH_NS, computeNs),
      );
      expect(model.coefficientsNs[HIDDEN]).toBeGreaterThan(0.8);
      for (const tokens of [50, 1_000, 5_000]) {
        const ratio = believedNs(model, tokens) / Math.max(LAUNCH_NS, tokens * TOKEN_NS);
        expect(ratio).toBeGreaterThan(0.8);
        expect(ratio).toBeLessThan(1.25);
      }
    });

    it("is thought to cost little where only short prompts were seen, so that longer ones are tried", () => {
      const model = taught(
        (rng) => 20 + rng.below(110),
        () => LAUNCH_NS,
      );
      expect(believedNs(model, 1_000) / believedNs(model, 50)).toBeLessThan(1.15);
    });

    it("costs as much as it takes where engines do one after the other", () => {
      const model = taught(
        (rng) => 20 + rng.below(3_000),
        (computeNs) => LAUNCH_NS + computeNs,
      );
      expect(model.coefficientsNs[HIDDEN]).toBeLessThan(0.4);
      const differenceNs = believedNs(model, 2_000) - believedNs(model, 100);
      expect(differenceNs / (1_900 * TOKEN_NS)).toBeGreaterThan(0.6);
    });
  });

  it("gives a slow replica a factor of its own and leaves the others as they are", () => {
    const model = new SpeedModel(1);
    const rng = new Rng(2);
    for (let i = 0; i < 6_000; i++) model.learn(sampleOf(rng, i % 4, i % 4 === 3 ? 2 : 1));
    expect(model.factor(3) / model.factor(0)).toBeGreaterThan(1.6);
    expect(model.factor(3) / model.factor(0)).toBeLessThan(2.4);
    expect(model.factor(1) / model.factor(0)).toBeCloseTo(1, 1);
    expect(errorOf(model, 3, 2)).toBeLessThan(0.15);
    model.forget(3);
    expect(model.factor(3)).toBe(1);
  });

  it("makes nothing of the differences that chance makes between equal replicas", () => {
    const model = new SpeedModel(1);
    const rng = new Rng(3);
    const strayed = new Set<number>();
    for (let i = 0; i < 4_000; i++) {
      model.learn(sampleOf(rng, i % 8));
      if (i > 1_000) for (let replica = 0; replica < 8; replica++) strayed.add(model.factor(replica));
    }
    expect([...strayed]).toEqual([1]);
  });

  it("keeps the sum right where steps cannot be told from the sequences in them", () => {
    const model = new SpeedModel(1);
    const rng = new Rng(5);
    const full = { sequences: 128, contextTokens: 80_000 };
    const tookBy = ({ steps, prefill }: Pick<SpeedSample, "steps" | "prefill">): number => {
      const [step, sequence, context, promptToken, pair, batch] = ENGINE;
      const stepNs = step / 8 + sequence * full.sequences + context * full.contextTokens;
      return steps * stepNs + prefill.tokens * promptToken + prefill.pairs * pair + prefill.batches * batch;
    };
    for (let i = 0; i < 2_000; i++) {
      const { steps, prefill } = sampleOf(rng, i % 4);
      model.learn({ replica: i % 4, steps, prefill, ...full, tookNs: tookBy({ steps, prefill }), noise: 0.2 });
    }
    const [step, sequence, context] = model.coefficientsNs;
    const believedNs = step + sequence * full.sequences + context * full.contextTokens;
    const nothing = { tokens: 0, pairs: 0, batches: 0 };
    expect(believedNs / tookBy({ steps: 1, prefill: nothing })).toBeCloseTo(1, 1);
    for (const replica of [0, 1, 2, 3]) expect(model.factor(replica)).toBeCloseTo(1, 1);
  });

  it("is not led astray by stretches that the terms explain badly", () => {
    const model = new SpeedModel(1);
    const rng = new Rng(6);
    for (let i = 0; i < 3_000; i++) {
      const sample = sampleOf(rng, i % 3);
      model.learn(i % 20 === 0 ? { ...sample, tookNs: sample.tookNs / 1_000 } : sample);
    }
    expect(errorOf(model, 0)).toBeLessThan(0.2);
  });

  it("follows an engine that becomes slower", () => {
    const model = new SpeedModel(1);
    const rng = new Rng(3);
    for (let i = 0; i < 2_000; i++) model.learn(sampleOf(rng, 0));
    for (let i = 0; i < 2_000; i++) model.learn(sampleOf(rng, 0, 1.5));
    expect(errorOf(model, 0, 1.5)).toBeLessThan(0.15);
  });

  it("survives signals that cannot be: no time, or a thousand times too long", () => {
    const model = new SpeedModel(1);
    const rng = new Rng(4);
    for (let i = 0; i < 500; i++) model.learn(sampleOf(rng, 0));
    const before = model.coefficientsNs[STEP];
    model.learn({ ...sampleOf(rng, 0), tookNs: 0 });
    model.learn({ ...sampleOf(rng, 0), tookNs: Number.NaN });
    expect(model.coefficientsNs[STEP]).toBe(before);
    const odd = sampleOf(rng, 0);
    model.learn({ ...odd, tookNs: 1_000 * odd.tookNs });
    expect(errorOf(model, 0)).toBeLessThan(0.15);
    for (const term of [STEP, PROMPT_TOKEN, PAIR, PROMPT_BATCH]) expect(model.coefficientsNs[term]).toBeGreaterThan(0);
  });
});
