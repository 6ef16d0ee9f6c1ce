import { describe, expect, test } from "vitest";
import { Rng } from "../core/rng.ts";
import { Conversations } from "../workload/conversation/conversations.ts";
import { conversationPreset } from "../workload/conversation/presets.ts";
import { SessionRun } from "../workload/session-run.ts";
import { type ConversationLoad, type ConversationLoadOptions, conversationLoad } from "./conversation-load.ts";
import { SymbolicPrompts } from "./symbolic-prompts.ts";
import type { CompletedAnswer } from "./types.ts";

const starters = ["tides", "sails", "trees"].map((name) => ({
  name: `${name}.md`,
  text: `# ${name}\n\n${name} `.repeat(200),
}));
const closed = { kind: "closed", concurrency: 4 } as const;

function loadOf(change: Partial<ConversationLoadOptions> = {}): ConversationLoad {
  return conversationLoad({ starters, pace: closed, seed: 7, ...change });
}

/** What the first conversations ask for first, with the answers that would be given at most. */
function openings({ source, prompts }: ConversationLoad, count: number): readonly string[] {
  return Array.from({ length: count }, () => {
    const request = source.take();
    return `${request.id} ${request.outputTokens} ${prompts.write(request).json}`;
  });
}

describe("conversations about starters", () => {
  test("are the same for the same seed, and others for another", () => {
    expect(openings(loadOf(), 4)).toEqual(openings(loadOf(), 4));
    expect(openings(loadOf(), 4)).not.toEqual(openings(loadOf({ seed: 8 }), 4));
  });

  test("of several processes are together those of one", () => {
    const pace = { kind: "open", arrivals: { kind: "poisson", rateRps: 5 } } as const;
    const one = openings(loadOf({ pace }), 12);
    const shared = [0, 1, 2].map((index) => openings(loadOf({ pace, share: { index, of: 3 } }), 4));
    expect(one).toEqual(Array.from({ length: 12 }, (_, at) => shared[at % 3][Math.floor(at / 3)]));
  });

  test("have the turns and the lengths that are asked for", () => {
    const { source } = loadOf({ turns: [2, 2], maxTokens: 50 });
    const request = source.take();
    expect(request).toMatchObject({ outputTokens: 50, isLastTurn: false });
    source.ended(request, { nowNs: 0, completed: true });
  });

  test("are guessed at a token for every four characters until an engine says better", () => {
    const request = loadOf().source.take();
    expect(request.promptTokens).toBe(Math.ceil(starters[request.prompt.ids[0]].text.length / 4));
  });
});

describe("symbolic prompts", () => {
  const { parameters } = conversationPreset("multi-turn");
  const script = new Conversations({ ...parameters, turns: [3, 3] }, new Rng(1)).session(0)!;
  const answer: CompletedAnswer = { escapedText: "so it is", outputTokens: 3 };

  test("have one word per token, and each turn sends again what was said, with the answer as it came", () => {
    const run = new SessionRun(script);
    const prompts = new SymbolicPrompts(5, "completion");
    const first = run.next(0);
    const opening = JSON.parse(prompts.write(first).json) as string;
    expect(opening.split(" ")).toHaveLength(first.promptTokens);
    prompts.answered(first, answer);
    run.answered(first, answer.outputTokens);
    const second = run.next(1);
    const text = JSON.parse(prompts.write(second).json) as string;
    expect(text.startsWith(`${opening}so it is `)).toBe(true);
    // The first word of the answer goes on from the last of the prompt, as a completion does.
    expect(text.split(" ")).toHaveLength(second.promptTokens - 1);
  });

  test("as chats have a message per turn", () => {
    const run = new SessionRun(script);
    const prompts = new SymbolicPrompts(5);
    const first = run.next(0);
    prompts.write(first);
    prompts.answered(first, answer);
    run.answered(first, answer.outputTokens);
    const messages = JSON.parse(prompts.write(run.next(1)).json) as { role: string; content: string }[];
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "user"]);
    expect(messages[1].content).toBe("so it is");
  });

  test("share the text of a shared segment between sessions", () => {
    const shared = { id: 3, tokens: 40 };
    const texts = [10, 11].map((id) => {
      const turn = { requestId: id, outputTokens: 1, answerId: -id, thinkNs: 0 };
      const prompt = { kind: "append", segments: [shared, { id, tokens: 5 }] } as const;
      const request = new SessionRun({ session: id, name: "s", turns: [{ ...turn, prompt }] }).next(0);
      return (JSON.parse(new SymbolicPrompts(5, "completion").write(request).json) as string).split(" ");
    });
    expect(texts[0].slice(0, 40)).toEqual(texts[1].slice(0, 40));
    expect(texts[0].slice(40)).not.toEqual(texts[1].slice(40));
  });

  test("forget what is over", () => {
    const run = new SessionRun(script);
    const prompts = new SymbolicPrompts(5);
    const first = run.next(0);
    prompts.write(first);
    prompts.forget(first.session);
    prompts.answered(first, answer);
    run.answered(first, answer.outputTokens);
    expect(JSON.parse(prompts.write(run.next(1)).json)).toHaveLength(1);
  });
});
