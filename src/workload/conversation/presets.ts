import { WarmpathError } from "../../core/errors.ts";
import type { ConversationParameters } from "./parameters.ts";

/** A named workload of conversations and what it stands for. */
export interface ConversationPreset {
  readonly name: string;
  readonly about: string;
  readonly parameters: ConversationParameters;
}

/**
 * The conversations of the H200 study: 10 excerpts of 3,500 to 4,000 tokens, 3 to 5 turns, the answers by turn of its
 * representative conversation (mean over all turns about 830), follow-ups of a fast user model. New user tokens per turn
 * are what its input lengths leave after the answers: 45, 82, 92, 25. The tail is set so that the p95 of all inputs is
 * near 12,700: a tenth of the conversations bring about 7,900 tokens more, so p95 is the median of those.
 */
const MULTI_TURN: ConversationParameters = {
  starters: 10,
  starterTokens: [3500, 4000],
  starterSkew: 0,
  openingTokens: [0, 0],
  turns: [3, 5],
  userTokens: [25, 95],
  outputTokensByTurn: [555, 818, 1008, 875, 888],
  outputVariation: 0.25,
  outputMaxTokens: 2048,
  thinkMs: [300, 1000],
  tailShare: 0.1,
  tailTokens: [6900, 8900],
  contextTokens: 131_072,
};

const NO_TAIL: Pick<ConversationParameters, "tailShare" | "tailTokens"> = { tailShare: 0, tailTokens: [0, 0] };

/** All presets; the first is what the published studies used. */
export const CONVERSATION_PRESETS: readonly ConversationPreset[] = [
  {
    name: "multi-turn",
    about: "10 shared excerpts of 3,500-4,000 tokens, 3-5 turns, about 830 tokens per answer, a tail of long inputs",
    parameters: MULTI_TURN,
  },
  {
    name: "rag",
    about: "3,000-8,000 tokens of retrieved documents, some far more popular than others, 2-5 questions about them",
    parameters: {
      ...MULTI_TURN,
      ...NO_TAIL,
      starters: 200,
      starterTokens: [3000, 8000],
      starterSkew: 1,
      openingTokens: [20, 80],
      turns: [2, 5],
      userTokens: [20, 80],
      outputTokensByTurn: [350],
      outputVariation: 0.5,
      thinkMs: [500, 5000],
    },
  },
  {
    name: "system-prompt",
    about: "10 agents with system prompts of 1,000-4,000 tokens, short questions, 1-3 turns",
    parameters: {
      ...MULTI_TURN,
      ...NO_TAIL,
      starterTokens: [1000, 4000],
      openingTokens: [50, 300],
      turns: [1, 3],
      userTokens: [50, 300],
      outputTokensByTurn: [250],
      outputVariation: 0.5,
      thinkMs: [500, 5000],
    },
  },
  {
    name: "knowledge-assistant",
    about: "every user brings a document of 3,000-12,000 tokens and asks 3-8 questions, answers of 800-1,000 tokens",
    parameters: {
      ...MULTI_TURN,
      ...NO_TAIL,
      starters: 1,
      starterTokens: [300, 300],
      openingTokens: [3000, 12_000],
      turns: [3, 8],
      userTokens: [20, 120],
      outputTokensByTurn: [900],
      outputVariation: 0.06,
      thinkMs: [1000, 10_000],
    },
  },
  {
    name: "short-chat",
    about: "200 tokens in, 50 out, one turn, nothing shared worth a cache hit: where routing by cache cannot help",
    parameters: {
      ...MULTI_TURN,
      ...NO_TAIL,
      starters: 1,
      starterTokens: [20, 20],
      openingTokens: [180, 180],
      turns: [1, 1],
      outputTokensByTurn: [50],
      outputVariation: 0,
    },
  },
];

/** The preset of a name; throws with the names there are. */
export function conversationPreset(name: string): ConversationPreset {
  const preset = CONVERSATION_PRESETS.find((one) => one.name === name);
  if (preset !== undefined) return preset;
  const names = CONVERSATION_PRESETS.map((one) => one.name).join(", ");
  throw new WarmpathError("WP_INVALID_INPUT", `unknown preset "${name}"; there are ${names}`);
}
