import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Rng } from "../../core/rng.ts";
import type { SessionScript } from "../request.ts";
import { Conversations } from "./conversations.ts";
import type { ConversationParameters } from "./parameters.ts";
import { CONVERSATION_PRESETS, conversationPreset } from "./presets.ts";
import { PUBLISHED_INPUT_P95, PUBLISHED_OUTPUT_MEAN, PUBLISHED_TURNS, turnProfile } from "./turn-profile.ts";

const MULTI_TURN = conversationPreset("multi-turn").parameters;

function scripts(parameters: ConversationParameters, count: number, seed = 1): SessionScript[] {
  const supply = new Conversations(parameters, new Rng(seed));
  return Array.from({ length: count }, (_, at) => supply.session(at)!);
}

function openingSegments(script: SessionScript): readonly { id: number; tokens: number }[] {
  const { prompt } = script.turns[0];
  return prompt.kind === "append" ? prompt.segments : [];
}

describe("the published studies' conversations", () => {
  test("have the input lengths by turn, the tail and the answers that the study publishes", () => {
    for (const seed of [1, 2, 3]) {
      const profile = turnProfile(new Conversations(MULTI_TURN, new Rng(seed)), 4000);
      expect(profile.turns).toHaveLength(5);
      for (const { turn, inputP50, outputMean } of profile.turns) {
        const published = PUBLISHED_TURNS[turn - 1];
        expect(Math.abs(inputP50 / published.inputTokens - 1)).toBeLessThan(0.1);
        expect(Math.abs(outputMean / published.outputTokens - 1)).toBeLessThan(0.02);
      }
      expect(Math.abs(profile.inputP95 / PUBLISHED_INPUT_P95 - 1)).toBeLessThan(0.03);
      expect(Math.abs(profile.outputMean / PUBLISHED_OUTPUT_MEAN - 1)).toBeLessThan(0.03);
    }
  });

  test("share ten starters of 3,500 to 4,000 tokens and have three to five turns", () => {
    const starters = new Map<number, number>();
    const turns = new Set<number>();
    for (const script of scripts(MULTI_TURN, 500)) {
      const [starter] = openingSegments(script);
      expect(starters.get(starter.id) ?? starter.tokens).toBe(starter.tokens);
      starters.set(starter.id, starter.tokens);
      turns.add(script.turns.length);
    }
    expect(starters.size).toBe(10);
    expect(Math.min(...starters.values())).toBeGreaterThanOrEqual(3500);
    expect(Math.max(...starters.values())).toBeLessThanOrEqual(4000);
    expect(turns).toEqual(new Set([3, 4, 5]));
  });

  test("have no input beyond the usual without the tail", () => {
    const profile = turnProfile(new Conversations({ ...MULTI_TURN, tailShare: 0 }, new Rng(1)), 2000);
    expect(profile.inputP95).toBeLessThan(8500);
  });
});

describe("conversations", () => {
  test("are fixed by seed and number alone", () => {
    fc.assert(
      fc.property(fc.nat(), fc.nat(1000), (seed, ordinal) => {
        const fresh = new Conversations(MULTI_TURN, new Rng(seed));
        const used = new Conversations(MULTI_TURN, new Rng(seed));
        for (let at = 0; at < 3; at++) used.session(at);
        expect(used.session(ordinal)).toEqual(fresh.session(ordinal));
      }),
      { numRuns: 30 },
    );
    expect(scripts(MULTI_TURN, 20, 1)).not.toEqual(scripts(MULTI_TURN, 20, 2));
  });

  test("never share a segment that is not a starter", () => {
    const seen = new Set<number>();
    let own = 0;
    for (const script of scripts(MULTI_TURN, 300)) {
      for (const { prompt, answerId } of script.turns) {
        const segments = prompt.kind === "append" ? prompt.segments : [];
        for (const id of [...segments.map((segment) => segment.id), answerId]) {
          if (id < MULTI_TURN.starters) continue;
          seen.add(id);
          own++;
        }
      }
    }
    expect(seen.size).toBe(own);
  });

  test("keep all other turns when only one turn's answers change", () => {
    const changed = { ...MULTI_TURN, outputTokensByTurn: [555, 400, 1008, 875, 888] };
    const before = scripts(MULTI_TURN, 20);
    for (const [at, script] of scripts(changed, 20).entries()) {
      expect(script.turns.map((turn) => turn.thinkNs)).toEqual(before[at].turns.map((turn) => turn.thinkNs));
      expect(script.turns[2].outputTokens).toBe(before[at].turns[2].outputTokens);
    }
  });

  test("end before a turn that would not fit the context", () => {
    const profile = turnProfile(
      new Conversations({ ...MULTI_TURN, tailShare: 0, contextTokens: 6000 }, new Rng(1)),
      500,
    );
    expect(profile.turns.length).toBeLessThan(5);
    expect(profile.turns.every((turn) => turn.inputMean < 6000)).toBe(true);
  });

  test("end where they are told to", () => {
    const supply = new Conversations(MULTI_TURN, new Rng(1), 2);
    expect([supply.session(1)?.session, supply.session(2)]).toEqual([1, undefined]);
  });

  test.each([
    [{ turns: [5, 3] }, "turns must be two whole numbers, the lower first, got [5,3]"],
    [{ turns: [0, 3] }, "turns must begin at 1 or more, got [0,3]"],
    [{ turns: [1, 65] }, "turns must end at 64 or less, got [1,65]"],
    [{ starters: 0 }, "starters must be a whole number, 1 or more, got 0"],
    [{ outputTokensByTurn: [] }, "outputTokensByTurn must be a list of numbers, each 1 or more, got []"],
    [{ outputVariation: -1 }, "outputVariation must be 0 or more, got -1"],
    [{ outputMaxTokens: 0 }, "outputMaxTokens must be a whole number, 1 or more, got 0"],
    [{ tailShare: 1.5 }, "tailShare must be between 0 and 1, got 1.5"],
    [{ starterSkew: -1 }, "starterSkew must be 0 or more, got -1"],
    [{ starterTokens: [0, 0] }, "starterTokens and openingTokens must leave a prompt of at least one token, got [0,0]"],
    [{ contextTokens: 1 }, "contextTokens must be 2 or more, got 1"],
  ] as [Partial<ConversationParameters>, string][])("refuse %j", (change, message) => {
    expect(() => new Conversations({ ...MULTI_TURN, ...change }, new Rng(1))).toThrow(message);
  });
});

describe("a preset", () => {
  test("short-chat is 200 tokens in and 50 out", () => {
    const { parameters } = conversationPreset("short-chat");
    const profile = turnProfile(new Conversations(parameters, new Rng(1)), 100);
    expect(profile).toMatchObject({ requests: 100, inputP50: 200, inputP95: 200, outputMean: 50 });
  });

  test("rag puts 3,000 to 8,000 tokens of documents in front, system-prompt 1,000 to 4,000", () => {
    for (const [name, least, most] of [
      ["rag", 3000, 8000],
      ["system-prompt", 1000, 4000],
    ] as const) {
      const tokens = scripts(conversationPreset(name).parameters, 300).map(
        (script) => openingSegments(script)[0].tokens,
      );
      expect(Math.min(...tokens)).toBeGreaterThanOrEqual(least);
      expect(Math.max(...tokens)).toBeLessThanOrEqual(most);
    }
  });

  test("knowledge-assistant answers at length", () => {
    const profile = turnProfile(
      new Conversations(conversationPreset("knowledge-assistant").parameters, new Rng(1)),
      500,
    );
    expect(profile.outputMean).toBeGreaterThan(800);
    expect(profile.outputMean).toBeLessThan(1000);
  });

  test("that does not exist is answered with those that do", () => {
    const names = CONVERSATION_PRESETS.map((preset) => preset.name).join(", ");
    expect(() => conversationPreset("chat")).toThrow(`unknown preset "chat"; there are ${names}`);
  });
});
