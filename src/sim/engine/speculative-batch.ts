import type { Rng } from "../../core/rng.ts";
import { drawAcceptance, drawTokens } from "../timing/speculation.ts";
import type { Sequence } from "./engine-request.ts";
import type { SpeculationLimits } from "./profile.ts";

/** Requests decoded with drafts: each gains a number of tokens of its own in every step, so each is looked at. */
export class SpeculativeBatch {
  readonly drafts: number;
  readonly sequences: Sequence[] = [];
  readonly #limits: SpeculationLimits;
  readonly #rng: Rng;
  readonly #streams = new Map<number, Rng>();
  contextTokens = 0;

  constructor(limits: SpeculationLimits, rng: Rng) {
    this.#limits = limits;
    this.#rng = rng;
    this.drafts = limits.drafts;
  }

  get size(): number {
    return this.sequences.length;
  }

  join(sequence: Sequence): void {
    sequence.state = "decoding";
    let at = this.sequences.length;
    while (at > 0 && this.sequences[at - 1].order > sequence.order) at--;
    this.sequences.splice(at, 0, sequence);
    this.contextTokens += sequence.computed + 1;
    const { key } = sequence.request;
    if (this.#streams.has(key)) return;
    // Keyed by the request, so that it draws the same numbers wherever it is placed.
    const stream = this.#rng.stream(key);
    this.#streams.set(key, stream);
    sequence.acceptance = drawAcceptance(stream, this.#limits.acceptanceMean, this.#limits.acceptanceDeviation);
  }

  leave(sequence: Sequence): void {
    this.sequences.splice(this.sequences.indexOf(sequence), 1);
    this.contextTokens -= sequence.computed + 1;
  }

  forget(sequence: Sequence): void {
    this.#streams.delete(sequence.request.key);
  }

  /** Tokens the cache must have room for in the coming step, drafts included. */
  reachOf(sequence: Sequence): number {
    const { promptTokens, outputTokens } = sequence.request;
    return Math.min(sequence.computed + this.drafts + 1, promptTokens + outputTokens - 1);
  }

  /** Draws what a request gains in one step and adds it; returns how many drafts were accepted, useful or not. */
  gain(sequence: Sequence): number {
    const stream = this.#streams.get(sequence.request.key) ?? this.#rng;
    const drawn = drawTokens(stream, sequence.acceptance, this.drafts);
    const tokens = Math.min(drawn, sequence.request.outputTokens - sequence.generated);
    sequence.computed += tokens;
    sequence.generated += tokens;
    this.contextTokens += tokens;
    return drawn - 1;
  }
}
