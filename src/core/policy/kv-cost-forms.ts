import type { CostRule } from "./cost-policy.ts";
import type { TieBreak } from "./lowest-cost.ts";
import type { CandidateView, CostTerm } from "./types.ts";

/** The knobs of the mission's formula. */
export interface MissionKnobs {
  readonly overlapScoreWeight: number;
  /** What a cached block is worth: 1, or 0 to ignore the cache. */
  readonly overlapScoreCredit: number;
}

/** The formula of the mission's second document: the request's own uncached blocks and the replica's decode blocks. */
export class MissionForm implements CostRule {
  readonly usesActivePrefix = false;
  readonly tieBreak: TieBreak = "rotation";
  readonly #weight: number;
  readonly #credit: number;

  constructor(knobs: MissionKnobs) {
    this.#weight = knobs.overlapScoreWeight;
    this.#credit = knobs.overlapScoreCredit;
  }

  price(view: CandidateView, costs: Float64Array): void {
    const { count, candidates } = view;
    const { activeBlocks } = view.load;
    for (let i = 0; i < count; i++) {
      const replica = candidates[i];
      costs[i] = this.#weight * this.#prefillBlocks(view, replica) + activeBlocks[replica];
    }
  }

  describe(): string {
    return `${this.#weight} × prefill blocks + decode blocks${this.#credit === 0 ? ", cache ignored" : ""}`;
  }

  unit(): string {
    return "blocks";
  }

  terms(view: CandidateView, replica: number): CostTerm[] {
    return [
      { name: "prefill", value: this.#weight * this.#prefillBlocks(view, replica) },
      { name: "decode", value: view.load.activeBlocks[replica] },
    ];
  }

  #prefillBlocks(view: CandidateView, replica: number): number {
    const blocks = view.promptBlocks - this.#credit * view.cachedBlocks[replica];
    return blocks > 0 ? blocks : 0;
  }
}

/** The knobs of Dynamo's cost function. */
export interface DynamoKnobs extends MissionKnobs {
  readonly overlapScoreCreditDecay: number;
  readonly hostCacheHitWeight: number;
  readonly diskCacheHitWeight: number;
  readonly prefillLoadScale: number;
  readonly decodeActiveRequestWeight: number;
  /** Whether blocks that active requests already hold are not counted again for this one. */
  readonly assumeReuse: boolean;
}

/** Today's Dynamo: pending prefill, tiered and decaying credits, and the request's own decode blocks as well. */
export class DynamoForm implements CostRule {
  readonly usesActivePrefix: boolean;
  readonly tieBreak: TieBreak = "draw";
  readonly #knobs: DynamoKnobs;
  readonly #scale: number;
  #lowestPendingTokens = 0;

  constructor(knobs: DynamoKnobs) {
    this.usesActivePrefix = knobs.assumeReuse;
    this.#knobs = knobs;
    this.#scale = knobs.overlapScoreWeight * knobs.prefillLoadScale;
  }

  price(view: CandidateView, costs: Float64Array): void {
    const { count, candidates } = view;
    const { pendingPrefillTokens, activeBlocks, inFlight } = view.load;
    const requestWeight = this.#knobs.decodeActiveRequestWeight;
    if (this.#knobs.overlapScoreCreditDecay > 0) {
      let lowest = Infinity;
      for (let i = 0; i < count; i++) {
        const tokens = pendingPrefillTokens[candidates[i]];
        if (tokens < lowest) lowest = tokens;
      }
      this.#lowestPendingTokens = lowest;
    }
    for (let i = 0; i < count; i++) {
      const replica = candidates[i];
      const prefill = this.#rawPrefillBlocks(view, replica) - this.#credits(view, replica);
      costs[i] =
        (prefill > 0 ? this.#scale * prefill : 0) +
        activeBlocks[replica] +
        this.#incomingBlocks(view, replica) +
        requestWeight * inFlight[replica];
    }
  }

  describe(): string {
    const { overlapScoreCredit, overlapScoreCreditDecay, hostCacheHitWeight, diskCacheHitWeight } = this.#knobs;
    const decay = overlapScoreCreditDecay > 0 ? ` (decay ${overlapScoreCreditDecay})` : "";
    const credits = `${overlapScoreCredit}${decay} × device − ${hostCacheHitWeight} × host − ${diskCacheHitWeight} × disk`;
    const requests = `${this.#knobs.decodeActiveRequestWeight} × requests in flight`;
    return `${this.#scale} × max(0, pending and prompt blocks − ${credits}) + decode blocks + ${requests}`;
  }

  unit(): string {
    return "blocks";
  }

  terms(view: CandidateView, replica: number): CostTerm[] {
    const scale = this.#scale;
    const { hostCacheHitWeight, diskCacheHitWeight, decodeActiveRequestWeight } = this.#knobs;
    const terms: CostTerm[] = [
      { name: "pending prefill", value: (scale * view.load.pendingPrefillTokens[replica]) / view.blockTokens },
      { name: "own prefill", value: (scale * view.promptTokens) / view.blockTokens },
      { name: "device credit", value: 0 - scale * this.#deviceCredit(view, replica) },
      { name: "host credit", value: 0 - scale * hostCacheHitWeight * view.hostBlocks[replica] },
      { name: "disk credit", value: 0 - scale * diskCacheHitWeight * view.diskBlocks[replica] },
      { name: "active decode", value: view.load.activeBlocks[replica] },
      { name: "own decode", value: this.#incomingBlocks(view, replica) },
      { name: "active requests", value: decodeActiveRequestWeight * view.load.inFlight[replica] },
    ];
    const excessCredit = this.#credits(view, replica) - this.#rawPrefillBlocks(view, replica);
    // Only a credit above 1 can be worth more than the work, and Dynamo does not pay it out.
    if (excessCredit > 0) terms.push({ name: "credit beyond the work", value: scale * excessCredit });
    return terms;
  }

  #rawPrefillBlocks(view: CandidateView, replica: number): number {
    return (view.load.pendingPrefillTokens[replica] + view.promptTokens) / view.blockTokens;
  }

  #credits(view: CandidateView, replica: number): number {
    const { hostCacheHitWeight, diskCacheHitWeight } = this.#knobs;
    return (
      this.#deviceCredit(view, replica) +
      hostCacheHitWeight * view.hostBlocks[replica] +
      diskCacheHitWeight * view.diskBlocks[replica]
    );
  }

  #deviceCredit(view: CandidateView, replica: number): number {
    const credit = this.#knobs.overlapScoreCredit * view.cachedBlocks[replica];
    const decay = this.#knobs.overlapScoreCreditDecay;
    if (decay === 0) return credit;
    const requestBlocks = Math.max(1, Math.ceil(view.promptTokens / view.blockTokens));
    const excessTokens = view.load.pendingPrefillTokens[replica] - this.#lowestPendingTokens;
    return credit / (1 + (decay * excessTokens) / view.blockTokens / requestBlocks);
  }

  #incomingBlocks(view: CandidateView, replica: number): number {
    if (!this.usesActivePrefix) return view.promptBlocks;
    const blocks = view.promptBlocks - view.activePrefixBlocks[replica];
    return blocks > 0 ? blocks : 0;
  }
}
