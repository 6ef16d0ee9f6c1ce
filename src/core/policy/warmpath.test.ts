import { describe, expect, it } from "vitest";
import { candidateView, type CandidateRow, type RequestRow } from "./candidate-view.ts";
import { createPolicy } from "./registry.ts";
import type { Policy } from "./types.ts";

const REQUEST: RequestRow = { promptBlocks: 64, expectedOutputTokens: 200 };
const HOLDER = { cachedBlocks: 60, confirmedBlocks: 60 };

function chosen(
  rows: readonly CandidateRow[],
  request: RequestRow = REQUEST,
  policy = createPolicy("warmpath"),
): string {
  const choice = policy.choose(candidateView(request, rows));
  return choice.kind === "place" ? rows[choice.replica].name : choice.kind;
}

function terms(policy: Policy, row: CandidateRow, request: RequestRow = REQUEST): Record<string, number> {
  const [candidate] = policy.explain(candidateView(request, [row])).candidates;
  return Object.fromEntries(candidate.terms.map(({ name, value }) => [name, value]));
}

describe("warmpath", () => {
  it("goes where the prompt is cached while that replica has room", () => {
    const busy = { ...HOLDER, inFlight: 3, decoding: 3, contextTokens: 9_000 };
    expect(chosen([{ name: "cold" }, { name: "warm", ...busy }])).toBe("warm");
  });

  it("leaves the cache when the queue there costs more than it saves", () => {
    const queued = { ...HOLDER, inFlight: 8, decoding: 3, pendingPrefillTokens: 40_000, contextTokens: 9_000 };
    expect(chosen([{ name: "cold" }, { name: "warm", ...queued }])).toBe("cold");
  });

  it("sees a full batch coming: the first request without a slot goes elsewhere", () => {
    const full = (inFlight: number): CandidateRow => {
      return {
        name: "warm",
        cachedBlocks: 16,
        confirmedBlocks: 16,
        batchSlots: 16,
        inFlight,
        decoding: inFlight,
        contextTokens: 4_000 * inFlight,
      };
    };
    const other = { name: "cold", batchSlots: 16, inFlight: 10, decoding: 10, contextTokens: 40_000 };
    const request = { promptBlocks: 16, expectedOutputTokens: 200 };
    expect(chosen([full(15), other], request)).toBe("warm");
    expect(chosen([full(16), other], request)).toBe("cold");
  });

  it("sees a full pool coming", () => {
    const crowded = { inFlight: 4, decoding: 4, contextTokens: 40_000, kvBlocks: 700 };
    const policy = createPolicy("warmpath");
    expect(terms(policy, { name: "tight", ...crowded, newBlocks: 690 })["memory wait"]).toBeGreaterThan(0);
    expect(terms(policy, { name: "roomy", ...crowded, newBlocks: 300 })["memory wait"]).toBe(0);
  });

  it("gives as much for blocks whose prompt has had its first token as for those that an event has confirmed", () => {
    const policy = createPolicy("warmpath");
    const told = terms(policy, { name: "a", cachedBlocks: 60, confirmedBlocks: 60 });
    expect(terms(policy, { name: "a", cachedBlocks: 60, confirmedBlocks: 0, settledBlocks: 60 })).toEqual(told);
  });

  it("gives less for blocks that are expected than for blocks that are there", () => {
    const policy = createPolicy("warmpath");
    const confirmed = terms(policy, { name: "a", cachedBlocks: 60, confirmedBlocks: 60 })["own prompt"];
    const expected = terms(policy, { name: "a", cachedBlocks: 60, confirmedBlocks: 0 })["own prompt"];
    expect(expected).toBeGreaterThan(confirmed);
    expect(expected).toBeLessThan(terms(policy, { name: "a" })["own prompt"]);
  });

  it("waits for a slot at a warm replica rather than waste a prefill, where that is the smaller harm", () => {
    const warm = { name: "warm", cachedBlocks: 600, confirmedBlocks: 600, batchSlots: 64, decoding: 64 };
    const cold = { name: "cold", batchSlots: 64, inFlight: 60, decoding: 60, contextTokens: 60_000 };
    const request = { promptBlocks: 640, expectedOutputTokens: 20, mayHold: true };
    const withRequests = (inFlight: number): CandidateRow[] => [{ ...warm, inFlight, contextTokens: 64_000 }, cold];
    expect(chosen(withRequests(64), request)).toBe("warm");
    expect(chosen(withRequests(20_000), request)).toBe("cold");
  });

  it("routes a burst on an idle fleet as calmly as a single request, and a queue that lasts as one", () => {
    const policy = createPolicy("warmpath");
    const waiting = (prompts: number): CandidateRow[] => [{ name: "a", inFlight: prompts }];
    const urgencyAt = (nowNs: number, prompts: number): number => {
      const view = candidateView({ ...REQUEST, nowNs }, waiting(prompts));
      policy.choose(view);
      const { rule } = policy.explain(view);
      policy.observe?.({ kind: "placed", nowNs, replica: 0 });
      return Number.parseFloat(rule);
    };
    expect([0, 1, 2, 3, 4, 5, 6, 7].map((prompts) => urgencyAt(0, prompts))).toEqual(Array(8).fill(50));
    const lasting = [2, 4, 6, 8, 10].map((second) => urgencyAt(second * 1e9, 8));
    expect(lasting).toEqual(lasting.toSorted((a, b) => b - a));
    expect(lasting[4]).toBeLessThan(8);
  });

  it("takes prompts for no queue that come by the dozen in every step", () => {
    /** Urgency after twenty seconds in which so many requests came and twenty were waiting all the time. */
    const urgencyAt = (perSecond: number): number => {
      const policy = createPolicy("warmpath");
      const rows = [{ name: "a", inFlight: 20 }];
      for (let placed = 0; placed < 20 * perSecond; placed++) {
        const nowNs = (placed * 1e9) / perSecond;
        policy.choose(candidateView({ ...REQUEST, nowNs }, rows));
        policy.observe?.({ kind: "placed", nowNs, replica: 0 });
      }
      return Number.parseFloat(policy.explain(candidateView({ ...REQUEST, nowNs: 20e9 }, rows)).rule);
    };
    expect(urgencyAt(10)).toBeLessThan(6);
    expect(urgencyAt(1_000)).toBeGreaterThan(35);
  });

  describe("with prompts on their way to a replica that decodes", () => {
    const LOAD = { inFlight: 10, decoding: 10, contextTokens: 10_000 };
    const waiting = (prompts: number): CandidateRow => ({
      name: "busy",
      ...LOAD,
      inFlight: 10 + prompts,
      pendingPrefillTokens: 1_000 * prompts,
    });
    /** The terms of a newcomer there, `afterNs` behind as many prompts that were placed at once. */
    const behind = (prompts: number, afterNs: number): Record<string, number> => {
      const policy = createPolicy("warmpath");
      for (let placed = 0; placed < prompts; placed++) {
        policy.choose(candidateView(REQUEST, [waiting(placed)]));
        policy.observe?.({ kind: "placed", nowNs: 0, replica: 0 });
      }
      return terms(policy, waiting(prompts), { ...REQUEST, nowNs: afterNs });
    };

    it("counts those it is computed with: they are put off, and others are stopped once for all of them", () => {
      expect(behind(0, 0)["prompts put off"]).toBe(0);
      expect(behind(2, 0)["prompts put off"]).toBeCloseTo(2 * behind(1, 0)["prompts put off"]);
      expect(behind(1, 0)["prompts put off"]).toBeCloseTo(behind(1, 0)["own prompt"]);
      expect(behind(1, 0)["shared batch"]).toBeLessThan(0);
    });

    it("puts nobody off once their computation has begun", () => {
      expect(behind(2, 0.05e9)["prompts put off"]).toBe(0);
      expect(behind(2, 0.05e9)["shared batch"]).toBeCloseTo(0);
    });

    it("waits the less behind them the longer they are under way, and more again once they are late", () => {
      // Against its own prompt, since a queue that lasts makes all of it less urgent.
      const ahead = (afterNs: number): number => {
        const { "prompts ahead": others, "own prompt": own } = behind(1, afterNs);
        return others / own;
      };
      expect(ahead(0.5e9)).toBeLessThan(ahead(0.1e9));
      expect(ahead(60e9)).toBeCloseTo(ahead(0));
    });
  });

  describe("with a prompt under way whose prefix nobody holds yet, and an idle replica", () => {
    const idle = { name: "idle" };
    /** A policy that has seen so many requests which could have had their first tokens after as long as `blocks` of prompt take. */
    const seasoned = (requests: number, blocks: number): Policy => {
      const policy = createPolicy("warmpath");
      for (let i = 0; i < requests; i++) {
        policy.choose(candidateView({ ...REQUEST, promptBlocks: blocks, nowNs: i * 1e9 }, [idle]));
        policy.observe?.({ kind: "placed", nowNs: i * 1e9, replica: 0 });
      }
      return policy;
    };
    const computing = { name: "first", cachedBlocks: 60, settledBlocks: 0, inFlight: 1, pendingPrefillTokens: 4_096 };
    const decoding = { name: "idle", inFlight: 4, decoding: 4, contextTokens: 8_000 };
    /** Where the second request of the prefix goes, right behind the first. */
    const second = (policy: Policy, holder: CandidateRow = computing): string => {
      const at = { ...REQUEST, nowNs: 1e12 };
      policy.choose(candidateView(at, [{ name: "first" }, decoding]));
      policy.observe?.({ kind: "placed", nowNs: at.nowNs, replica: 0 });
      return chosen([holder, decoding], at, policy);
    };

    it("joins it where all of that batch are in time, rather than stop others by computing it again", () => {
      expect(second(seasoned(200, 128))).toBe("first");
    });

    it("says so: first tokens count for less wherever nobody is late", () => {
      const policy = seasoned(200, 128);
      second(policy);
      const { rule } = policy.explain(candidateView({ ...REQUEST, nowNs: 1e12 }, [computing, decoding]));
      expect(rule).toContain("4.0 × where nobody is late");
    });

    it("does not where their first tokens would be late", () => {
      expect(second(seasoned(200, 32))).toBe("idle");
    });

    it("does not, and gives nothing for it, where first tokens tell that whoever joined has computed it again", () => {
      const policy = seasoned(200, 128);
      /** As multiples of the prompt that it is a part of, so that urgency does not matter. */
      const ownPrompt = (): number => {
        const { "own prompt": own, "prompts ahead": ahead } = terms(policy, computing, { ...REQUEST, nowNs: 1e12 });
        return own / ahead;
      };
      expect(ownPrompt()).toBeLessThan(0.1);
      for (let i = 0; i < 200; i++) {
        const nowNs = 300e9 + i * 3e9;
        policy.choose(candidateView({ ...REQUEST, nowNs }, [computing]));
        policy.observe?.({ kind: "placed", nowNs, replica: 0 });
        policy.observe?.({
          kind: "first-token",
          nowNs: nowNs + 2e9,
          replica: 0,
          sincePlacedNs: 2e9,
          tokens: 1,
          promptTokens: 4_096,
          prefillTokens: 4_096,
          meanwhile: { tokens: 8_192, pairs: 1e7, batches: 1 },
          // Somebody else's prompt is pending, so that nothing is learned of speeds.
          load: { inFlight: 2, decoding: 1, contextTokens: 4_096 },
        });
      }
      expect(second(policy)).toBe("idle");
      expect(ownPrompt()).toBeGreaterThan(0.9);
    });

    it("does not before it knows what is late", () => {
      expect(second(seasoned(50, 128))).toBe("idle");
    });

    it("does not take its time for what somebody holds already", () => {
      const policy = seasoned(200, 128);
      const { rule } = policy.explain(
        candidateView({ ...REQUEST, nowNs: 1e12 }, [computing, { ...decoding, cachedBlocks: 60, confirmedBlocks: 60 }]),
      );
      expect(rule).not.toContain("where nobody is late");
    });
  });

  describe("with first tokens that would be late", () => {
    /** A policy that has seen what requests can have: first tokens after as long as a prompt of 64 blocks takes. */
    const seasoned = (requests: number): Policy => {
      const policy = createPolicy("warmpath");
      for (let i = 0; i < requests; i++) {
        policy.choose(candidateView({ ...REQUEST, nowNs: i * 1e9 }, [{ name: "idle" }]));
        policy.observe?.({ kind: "placed", nowNs: i * 1e9, replica: 0 });
      }
      return policy;
    };
    const queue = (prompts: number): CandidateRow => ({
      name: `queue of ${prompts}`,
      inFlight: prompts,
      pendingPrefillTokens: 4_096 * prompts,
    });
    const lateness = (policy: Policy, rows: readonly CandidateRow[]): number[] => {
      const { candidates, rule } = policy.explain(candidateView({ ...REQUEST, nowNs: 1e12 }, rows));
      expect(rule).toContain("lateness");
      return candidates.map(({ terms: parts }) => parts.find(({ name }) => name === "lateness")?.value ?? Number.NaN);
    };

    it("counts them once more from the moment on from which they are late", () => {
      const [idle, one, two] = lateness(seasoned(200), [{ name: "idle" }, queue(1), queue(2)]);
      expect(idle).toBe(0);
      expect(one).toBeGreaterThan(0);
      expect(two).toBeGreaterThan(one);
    });

    it("does not before it knows what is late", () => {
      expect(lateness(seasoned(50), [{ name: "idle" }, queue(2)])).toEqual([0, 0]);
    });

    it("does not where the request is late wherever it goes", () => {
      expect(lateness(seasoned(200), [queue(2), queue(3)])).toEqual([0, 0]);
    });

    it("moves nobody away from what only a late replica holds", () => {
      const policy = seasoned(200);
      const holder = { ...queue(3), cachedBlocks: 30, confirmedBlocks: 30 };
      const [held, cold] = lateness(policy, [holder, { name: "idle" }]);
      expect(held).toBeGreaterThan(0);
      expect(cold).toBe(held);
    });
  });

  describe("where nothing is shared", () => {
    const request = { promptBlocks: 3, expectedOutputTokens: 50 };
    const longAgo: CandidateRow = { name: "a", inFlight: 11, decoding: 11, contextTokens: 2_200, lastChosen: 1 };
    const justNow: CandidateRow = {
      ...longAgo,
      name: "b",
      inFlight: 10,
      decoding: 10,
      contextTokens: 2_000,
      lastChosen: 9,
    };

    it("lets candidates take turns that are as good as one another, as far as anybody can tell", () => {
      expect(chosen([longAgo, justNow], request)).toBe("a");
      expect(chosen([{ ...longAgo, lastChosen: 10 }, justNow], request)).toBe("b");
    });

    it("says by how much the one was above the other", () => {
      const { candidates } = createPolicy("warmpath").explain(candidateView(request, [longAgo, justNow]));
      const [above, lowest] = candidates.map(({ terms: parts }) =>
        parts.find(({ name }) => name === "too close to tell"),
      );
      expect(above?.value).toBeLessThan(0);
      expect(lowest?.value).toBeCloseTo(0);
      expect(candidates[0].cost).toBe(candidates[1].cost);
      for (const { cost, terms: parts } of candidates) {
        expect(parts.reduce((sum, { value }) => sum + value, 0)).toBeCloseTo(cost, 6);
      }
    });

    it("takes what is clearly better all the same", () => {
      const queue = { ...longAgo, inFlight: 14, pendingPrefillTokens: 12_000 };
      expect(chosen([queue, justNow], request)).toBe("b");
    });

    it("gives no part of the cache away for a turn", () => {
      expect(chosen([longAgo, { ...justNow, cachedBlocks: 1, confirmedBlocks: 1 }], request)).toBe("b");
    });

    it("has no turns once prompts are found cached", () => {
      const policy = createPolicy("warmpath");
      for (let i = 0; i < 100; i++) {
        policy.observe?.({
          kind: "first-token",
          nowNs: i,
          replica: 0,
          sincePlacedNs: 1e6,
          tokens: 2,
          promptTokens: 1_000,
          prefillTokens: 100,
          meanwhile: { tokens: 100, pairs: 0, batches: 1 },
          load: { inFlight: 1, decoding: 1, contextTokens: 1_000 },
        });
      }
      expect(chosen([longAgo, justNow], request, policy)).toBe("b");
    });
  });

  it("prices a prompt that is computed once more by those who come meanwhile", () => {
    const policy = createPolicy("warmpath");
    const rows: readonly CandidateRow[] = [{ name: "holder", ...HOLDER }, { name: "cold" }];
    const priceOf = (request: RequestRow, candidates: readonly CandidateRow[]): (number | undefined)[] =>
      policy.explain(candidateView(request, candidates)).candidates.map(({ terms: parts }) => {
        return parts.find(({ name }) => name === "prompts to come")?.value;
      });
    expect(priceOf(REQUEST, rows)).toEqual([0, 0]);
    let nowNs = 0;
    for (; nowNs < 20e9; nowNs += 0.1e9) policy.observe?.({ kind: "placed", nowNs, replica: 0 });
    const [atHolder, elsewhere = 0] = priceOf({ ...REQUEST, nowNs }, rows);
    expect(atHolder).toBe(0);
    expect(elsewhere).toBeGreaterThan(0);
    const expected = { ...HOLDER, confirmedBlocks: 0 };
    expect(priceOf({ ...REQUEST, nowNs }, [{ name: "computing", ...expected }, rows[1]])).toEqual([0, 0]);
  });

  it("avoids a replica that it has learned to be slow", () => {
    const policy = createPolicy("warmpath");
    const load = { inFlight: 4, decoding: 4, contextTokens: 8_000 };
    const meanwhile = { tokens: 0, pairs: 0, batches: 0 };
    for (let i = 0; i < 4_000; i++) {
      const replica = i % 2;
      const sinceLastNs = replica === 0 ? 64 * 40e6 : 64 * 20e6;
      policy.observe?.({ kind: "grew", nowNs: i, replica, tokens: 64, sinceLastNs, meanwhile, load });
    }
    expect(chosen([{ name: "slow" }, { name: "fast", inFlight: 1, decoding: 1 }], REQUEST, policy)).toBe("fast");
  });

  it("takes the time of a whole answer for nobody's first token", () => {
    const priceAfter = (tokens: number): number => {
      const policy = createPolicy("warmpath");
      const load = { inFlight: 1, decoding: 1, contextTokens: 1_000 };
      const prompt = {
        promptTokens: 1_000,
        prefillTokens: 1_000,
        meanwhile: { tokens: 1_000, pairs: 5e5, batches: 1 },
      };
      const signal = { kind: "first-token", replica: 0, sincePlacedNs: 5e9, ...prompt, load } as const;
      for (let i = 0; i < 200; i++) policy.observe?.({ ...signal, nowNs: i * 6e9, tokens });
      return terms(policy, { name: "a" })["own prompt"];
    };
    const untaught = terms(createPolicy("warmpath"), { name: "a" })["own prompt"];
    expect(priceAfter(500)).toBe(untaught);
    expect(priceAfter(1)).toBeGreaterThan(10 * untaught);
  });

  it("explains a decision by what it knew then, whatever it has learned since", () => {
    const policy = createPolicy("warmpath");
    const view = candidateView(REQUEST, [{ name: "a", inFlight: 2, decoding: 1, pendingPrefillTokens: 500 }]);
    const before = policy.explain(view);
    const learned = Array.from(policy.learned?.(view) ?? []);
    const load = { inFlight: 1, decoding: 1, contextTokens: 1_000 };
    const meanwhile = { tokens: 0, pairs: 0, batches: 0 };
    for (let i = 0; i < 100; i++) {
      policy.observe?.({ kind: "grew", nowNs: i, replica: 0, tokens: 1, sinceLastNs: 5e6, meanwhile, load });
    }
    expect(policy.explain(view)).not.toEqual(before);
    expect(policy.explain(view, learned)).toEqual(before);
  });

  describe("with a prefix whose only holder is busy, and an idle replica without it", () => {
    const warm = {
      name: "warm",
      ...HOLDER,
      inFlight: 6,
      decoding: 5,
      pendingPrefillTokens: 400,
      contextTokens: 20_000,
    };
    const rows: readonly CandidateRow[] = [warm, { name: "cold" }];

    /** How many requests of a prefix go to the holder before one goes elsewhere; each is carried out `everyNs` after the last. */
    const requestsUntilCopied = (policy: Policy, everyNs: number, holder: CandidateRow = warm): number => {
      for (let count = 0; count < 1_000; count++) {
        const nowNs = count * everyNs;
        const choice = policy.choose(candidateView({ ...REQUEST, prefix: "hot", nowNs }, [holder, rows[1]]));
        if (choice.kind !== "place") throw new Error("nothing was placed");
        if (choice.replica === 1) return count;
        policy.observe?.({ kind: "placed", nowNs, replica: choice.replica });
      }
      return Infinity;
    };

    it("copies it once the waits behind the holder have cost as much as a copy does", () => {
      const copied = requestsUntilCopied(createPolicy("warmpath"), 1e9);
      expect(copied).toBeGreaterThan(1);
      expect(copied).toBeLessThan(100);
    });

    it("copies it the sooner the more often it is asked for", () => {
      const often = requestsUntilCopied(createPolicy("warmpath"), 0.5e9) * 0.5;
      expect(often).toBeLessThan(requestsUntilCopied(createPolicy("warmpath"), 5e9) * 5);
    });

    it("takes a burst for no sign of lasting need", () => {
      expect(requestsUntilCopied(createPolicy("warmpath"), 1e3)).toBe(Infinity);
    });

    it("makes no copy of a prefix that is rarely asked for", () => {
      expect(requestsUntilCopied(createPolicy("warmpath"), 300e9)).toBe(Infinity);
    });

    it("makes none on purpose if it may take no time to pay for itself", () => {
      expect(requestsUntilCopied(createPolicy("warmpath", { paybackSeconds: 0 }), 1e9)).toBe(Infinity);
    });

    it("takes waiting for a prefix that is still being computed for no sign of lasting need", () => {
      const computing = { ...warm, confirmedBlocks: 0 };
      expect(requestsUntilCopied(createPolicy("warmpath"), 1e9, computing)).toBe(Infinity);
    });

    it("remembers nothing of a choice that was not carried out", () => {
      const policy = createPolicy("warmpath");
      const view = candidateView({ ...REQUEST, prefix: "hot" }, rows);
      for (let i = 0; i < 1_000; i++) policy.choose(view);
      expect(chosen(rows, { ...REQUEST, prefix: "hot" }, policy)).toBe("warm");
    });

    it("begins to save for the next copy when one is made", () => {
      const policy = createPolicy("warmpath");
      const first = requestsUntilCopied(policy, 1e9);
      policy.observe?.({ kind: "placed", nowNs: first * 1e9, replica: 1 });
      expect(requestsUntilCopied(policy, 1e9)).toBeGreaterThan(1);
    });

    it("shows what a copy is worth, so that the chosen one has the lowest cost", () => {
      const policy = createPolicy("warmpath");
      const nowNs = requestsUntilCopied(policy, 1e9) * 1e9;
      const view = candidateView({ ...REQUEST, prefix: "hot", nowNs }, rows);
      const [holder, copy] = policy.explain(view).candidates;
      expect(copy.cost).toBeLessThan(holder.cost);
      expect(copy.terms.find(({ name }) => name === "worth of a copy")?.value).toBeLessThan(0);
      for (const { cost, terms: parts } of [holder, copy]) {
        expect(parts.reduce((sum, { value }) => sum + value, 0)).toBeCloseTo(cost, 6);
      }
    });
  });
});
