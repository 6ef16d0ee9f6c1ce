import { describe, expect, it } from "vitest";
import { candidateView } from "../../src/core/policy/candidate-view.ts";
import { goesBefore, type TieBreak } from "../../src/core/policy/lowest-cost.ts";
import type { CandidateView, Choice, Explanation, Policy } from "../../src/core/policy/types.ts";
import { hashString, mixPair, Rng } from "../../src/core/rng.ts";

/** A policy with its knobs set, and what it promises about ties. */
export interface PolicyVariant {
  readonly title: string;
  readonly create: () => Policy;
  readonly tieBreak: TieBreak;
  /** Where all replicas are equal: visits them strictly in turn, or spreads over them by chance or session. */
  readonly equalFleet: "in turn" | "by chance";
}

const RANDOM_FLEETS = 10_000;
const MOST_REPLICAS = 40;

/** What every routing policy must keep, whatever it prefers. */
export function describePolicyContract(variant: PolicyVariant): void {
  describe(`policy ${variant.title}`, () => {
    it("places nothing where no replica is a candidate", () => {
      const policy = variant.create();
      const view = candidateView({ promptBlocks: 4 }, [{ name: "a", eligible: false }]);
      expect(policy.choose(view)).toEqual({ kind: "none" });
      expect(policy.explain(view).candidates).toEqual([]);
    });

    it("places on the only candidate, without a runner-up", () => {
      const view = candidateView({ promptBlocks: 4 }, [{ name: "a", eligible: false }, { name: "b" }]);
      const alone: Choice = { kind: "place", replica: 1, runnerUp: -1, margin: 0, tied: 1 };
      expect(variant.create().choose(view)).toEqual(alone);
    });

    it(`keeps its promises on ${RANDOM_FLEETS.toLocaleString("en")} random fleets`, { timeout: 120_000 }, () => {
      const policy = variant.create();
      const rng = new Rng(20_260_901).stream(variant.title);
      const view = new FleetView();
      const permuted = new FleetView();
      const broken: string[] = [];
      for (let n = 0; n < RANDOM_FLEETS && broken.length < 3; n++) {
        view.randomize(rng);
        const problem = brokenPromise(variant, policy, view) ?? permutationProblem(policy, view, permuted, rng);
        if (problem !== undefined) broken.push(`fleet ${n}: ${problem}`);
      }
      expect(broken).toEqual([]);
    });

    it("reaches every replica of a fleet of equals", () => {
      const names = ["a", "b", "c", "d", "e", "f", "g"];
      const turns = variant.equalFleet === "in turn" ? 10 : 1000;
      const visits = visitsAmongEquals(variant.create(), names, turns * names.length);
      // By chance: five standard deviations of a fair share of 1,000 out of 7,000.
      const tolerance = variant.equalFleet === "in turn" ? 0 : 150;
      for (const count of visits) expect(Math.abs(count - turns)).toBeLessThanOrEqual(tolerance);
    });
  });
}

function visitsAmongEquals(policy: Policy, names: readonly string[], decisions: number): number[] {
  const lastChosen = names.map(() => 0);
  const visits = names.map(() => 0);
  const rng = new Rng(7);
  for (let decision = 1; decision <= decisions; decision++) {
    const request = { promptBlocks: 10, chance: rng.u32(), session: `session ${decision}` };
    const rows = names.map((name, i) => ({ name, lastChosen: lastChosen[i] }));
    const choice = policy.choose(candidateView(request, rows));
    if (choice.kind !== "place") throw new Error(`nothing placed at decision ${decision}`);
    lastChosen[choice.replica] = decision;
    visits[choice.replica]++;
  }
  return visits;
}

/** One view refilled for every decision, as the router does it: what an earlier decision left behind must not matter. */
class FleetView implements CandidateView {
  readonly nowNs = 0;
  readonly mayHold = false;
  promptTokens = 0;
  promptBlocks = 0;
  blockTokens = 64;
  expectedOutputTokens = 0;
  sessionKey = 0;
  chance = 0;
  replicas = 0;
  count = 0;
  readonly candidates = new Int32Array(MOST_REPLICAS);
  readonly eligible = new Uint8Array(MOST_REPLICAS);
  readonly key = new Uint32Array(MOST_REPLICAS);
  readonly lastChosen = new Float64Array(MOST_REPLICAS);
  readonly cachedBlocks = new Int32Array(MOST_REPLICAS);
  readonly confirmedBlocks = new Int32Array(MOST_REPLICAS);
  readonly hostBlocks = new Int32Array(MOST_REPLICAS);
  readonly diskBlocks = new Int32Array(MOST_REPLICAS);
  readonly activePrefixBlocks = new Int32Array(MOST_REPLICAS);
  readonly settled = new Int32Array(MOST_REPLICAS);
  readonly load = {
    inFlight: new Int32Array(MOST_REPLICAS),
    decoding: new Int32Array(MOST_REPLICAS),
    pendingPrefillTokens: new Float64Array(MOST_REPLICAS),
    pendingPrefillPairs: new Float64Array(MOST_REPLICAS),
    contextTokens: new Float64Array(MOST_REPLICAS),
    activeBlocks: new Int32Array(MOST_REPLICAS),
    newBlocks: new Int32Array(MOST_REPLICAS),
    batchSlots: new Int32Array(MOST_REPLICAS),
    kvBlocks: new Int32Array(MOST_REPLICAS),
    stepTokens: new Int32Array(MOST_REPLICAS),
  };

  prefixKey(blocks: number): number {
    return mixPair(this.sessionKey, blocks);
  }

  settledBlocks(replica: number): number {
    return this.settled[replica];
  }

  /** Half of the fleets have figures so small that ties abound, the others are spread over realistic ranges. */
  randomize(rng: Rng): void {
    const small = rng.below(2) === 0;
    this.blockTokens = [16, 64, 512][rng.below(3)];
    this.promptBlocks = rng.below(small ? 4 : 400);
    this.promptTokens = this.promptBlocks * this.blockTokens + rng.below(this.blockTokens);
    this.expectedOutputTokens = rng.below(1000);
    this.sessionKey = rng.u32();
    this.chance = rng.u32();
    this.replicas = 1 + rng.below(MOST_REPLICAS);
    for (let i = 0; i < this.replicas; i++) this.#randomizeReplica(rng, i, small);
    this.#listCandidates();
  }

  /** Becomes the other fleet with replica `order[i]` in place `i`. */
  permuteFrom(other: FleetView, order: readonly number[]): void {
    const { promptTokens, promptBlocks, blockTokens, expectedOutputTokens, sessionKey, chance, replicas } = other;
    Object.assign(this, {
      promptTokens,
      promptBlocks,
      blockTokens,
      expectedOutputTokens,
      sessionKey,
      chance,
      replicas,
    });
    const sources = other.#columns();
    for (const [column, target] of this.#columns().entries()) {
      for (let i = 0; i < replicas; i++) target[i] = sources[column][order[i]];
    }
    this.#listCandidates();
  }

  #randomizeReplica(rng: Rng, i: number, small: boolean): void {
    const { load, promptBlocks } = this;
    this.key[i] = hashString(`worker ${i}`);
    this.eligible[i] = rng.below(5) > 0 ? 1 : 0;
    this.lastChosen[i] = rng.below(small ? 3 : 10_000);
    this.cachedBlocks[i] = rng.below(promptBlocks + 1);
    this.confirmedBlocks[i] = rng.below(this.cachedBlocks[i] + 1);
    this.settled[i] = this.confirmedBlocks[i] + rng.below(this.cachedBlocks[i] - this.confirmedBlocks[i] + 1);
    this.hostBlocks[i] = rng.below(promptBlocks - this.cachedBlocks[i] + 1);
    this.diskBlocks[i] = rng.below(promptBlocks - this.cachedBlocks[i] - this.hostBlocks[i] + 1);
    this.activePrefixBlocks[i] = rng.below(promptBlocks + 1);
    load.inFlight[i] = rng.below(small ? 3 : 200);
    load.decoding[i] = rng.below(load.inFlight[i] + 1);
    load.pendingPrefillTokens[i] = rng.below(small ? 2 : 50_000);
    load.pendingPrefillPairs[i] = rng.below(small ? 2 : 1_000_000);
    load.contextTokens[i] = rng.below(100_000);
    load.activeBlocks[i] = rng.below(small ? 3 : 20_000);
    load.newBlocks[i] = rng.below(load.activeBlocks[i] + 1);
    load.batchSlots[i] = rng.below(2) * 256;
    load.kvBlocks[i] = rng.below(2) * (1 + rng.below(16_384));
    load.stepTokens[i] = rng.below(2) * 8192;
  }

  #listCandidates(): void {
    this.count = 0;
    for (let i = 0; i < this.replicas; i++) if (this.eligible[i] === 1) this.candidates[this.count++] = i;
  }

  #columns(): (Int32Array | Float64Array | Uint32Array | Uint8Array)[] {
    const { eligible, key, lastChosen, cachedBlocks, confirmedBlocks, hostBlocks, diskBlocks } = this;
    const identity = [eligible, key, lastChosen, cachedBlocks, confirmedBlocks, hostBlocks, diskBlocks];
    return [...identity, this.settled, this.activePrefixBlocks, ...Object.values(this.load)];
  }
}

function brokenPromise(variant: PolicyVariant, policy: Policy, view: CandidateView): string | undefined {
  const choice = policy.choose(view);
  if (view.count === 0) return choice.kind === "none" ? undefined : "placed without candidates";
  if (choice.kind !== "place") return `answered ${choice.kind} although there are candidates`;
  if (!view.candidates.subarray(0, view.count).includes(choice.replica))
    return `picked ${choice.replica}, which is not a candidate`;
  const explanation = policy.explain(view);
  if (!sameChoice(policy.choose(view), choice)) return "chose differently for the same view";
  if (!sameChoice(variant.create().choose(view), choice)) return "chose by more than the view";
  return explanationProblem(view, explanation) ?? orderProblem(variant, view, choice, explanation);
}

function explanationProblem(view: CandidateView, explanation: Explanation): string | undefined {
  const explained = explanation.candidates.map((candidate) => candidate.replica);
  if (explained.join() !== view.candidates.subarray(0, view.count).join()) return "did not explain each candidate once";
  if (explanation.rule === "" || explanation.unit === "") return "gave no rule or unit";
  for (const { replica, cost, terms } of explanation.candidates) {
    let sum = 0;
    let magnitude = 1;
    for (const term of terms) {
      sum += term.value;
      magnitude += Math.abs(term.value);
    }
    if (!Number.isFinite(cost) || !Number.isFinite(magnitude))
      return `replica ${replica} has a cost that is not finite`;
    if (Math.abs(sum - cost) > 1e-9 * magnitude) return `terms of replica ${replica} give ${sum}, its cost is ${cost}`;
  }
  return undefined;
}

/** Sorting the explained costs, with the promised tie-break, must give the decision and its runner-up. */
function orderProblem(
  variant: PolicyVariant,
  view: CandidateView,
  choice: Choice & { kind: "place" },
  explanation: Explanation,
): string | undefined {
  const sorted = explanation.candidates.toSorted(
    (a, b) => a.cost - b.cost || (goesBefore(view, a.replica, b.replica, variant.tieBreak) ? -1 : 1),
  );
  const [best, second] = sorted;
  if (choice.replica !== best.replica) return `picked ${choice.replica}, the explanation says ${best.replica}`;
  const runnerUp = second?.replica ?? -1;
  if (choice.runnerUp !== runnerUp) return `runner-up ${choice.runnerUp}, the explanation says ${runnerUp}`;
  const margin = second === undefined ? 0 : second.cost - best.cost;
  if (choice.margin !== margin) return `margin ${choice.margin}, the explanation says ${margin}`;
  const tied = sorted.filter((candidate) => candidate.cost === best.cost).length;
  return choice.tied === tied ? undefined : `tied ${choice.tied}, the explanation says ${tied}`;
}

function permutationProblem(policy: Policy, view: FleetView, permuted: FleetView, rng: Rng): string | undefined {
  const order = Array.from({ length: view.replicas }, (_, i) => i);
  for (let i = order.length - 1; i > 0; i--) {
    const j = rng.below(i + 1);
    [order[i], order[j]] = [order[j], order[i]];
  }
  permuted.permuteFrom(view, order);
  const before = policy.choose(view);
  const after = policy.choose(permuted);
  const renumbered =
    after.kind === "place"
      ? { ...after, replica: order[after.replica], runnerUp: after.runnerUp < 0 ? -1 : order[after.runnerUp] }
      : after;
  if (sameChoice(renumbered, before)) return undefined;
  return `order ${order.join()} turns ${JSON.stringify(before)} into ${JSON.stringify(renumbered)}`;
}

function sameChoice(a: Choice, b: Choice): boolean {
  if (a.kind !== "place" || b.kind !== "place") return a.kind === b.kind;
  return a.replica === b.replica && a.runnerUp === b.runnerUp && a.margin === b.margin && a.tied === b.tied;
}
