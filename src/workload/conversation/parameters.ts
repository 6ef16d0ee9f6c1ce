import { WarmpathError } from "../../core/errors.ts";
import type { Range } from "../draw.ts";

/**
 * Everything that shapes a workload of conversations. A conversation opens with a shared starter (an excerpt, a system
 * prompt, retrieved documents), and every turn sends the whole history again.
 */
export interface ConversationParameters {
  /** Starters that conversations share, and how long each is. */
  readonly starters: number;
  readonly starterTokens: Range;
  /** Zipf exponent of how often each starter is chosen; 0 is equally often. */
  readonly starterSkew: number;
  /** Tokens of the user's own behind the starter in the first turn. */
  readonly openingTokens: Range;
  readonly turns: Range;
  /** New tokens of the user in every later turn. */
  readonly userTokens: Range;
  /** Mean answer per turn; the last value holds for all further turns. */
  readonly outputTokensByTurn: readonly number[];
  /** Coefficient of variation of answers around that mean; 0 makes them all equal. */
  readonly outputVariation: number;
  readonly outputMaxTokens: number;
  /** Time the user model takes for a follow-up. */
  readonly thinkMs: Range;
  /**
   * The input tail: this share of conversations brings a document of its own, so many tokens long, in the first turn
   * behind the starter. It is resent in every turn and shared with nobody.
   */
  readonly tailShare: number;
  readonly tailTokens: Range;
  /** Most tokens of prompt and answer together; a conversation ends before a turn that would not fit. */
  readonly contextTokens: number;
}

const RANGES = ["starterTokens", "openingTokens", "turns", "userTokens", "thinkMs", "tailTokens"] as const;

/** Throws with one line that names the first parameter that cannot be. */
export function checkConversationParameters(parameters: ConversationParameters): void {
  for (const name of RANGES) {
    const [least, most] = parameters[name];
    if (!(Number.isInteger(least) && Number.isInteger(most) && least >= 0 && most >= least)) {
      refuse(name, "must be two whole numbers, the lower first", parameters[name]);
    }
  }
  const { starters, turns, outputTokensByTurn, outputVariation, outputMaxTokens, tailShare, starterSkew } = parameters;
  if (!(Number.isInteger(starters) && starters >= 1)) refuse("starters", "must be a whole number, 1 or more", starters);
  if (turns[0] < 1) refuse("turns", "must begin at 1 or more", turns);
  if (turns[1] > MOST_TURNS) refuse("turns", `must end at ${MOST_TURNS} or less`, turns);
  if (outputTokensByTurn.length === 0 || outputTokensByTurn.some((mean) => !(mean >= 1 && mean < Infinity))) {
    refuse("outputTokensByTurn", "must be a list of numbers, each 1 or more", outputTokensByTurn);
  }
  if (!(outputVariation >= 0 && outputVariation < Infinity))
    refuse("outputVariation", "must be 0 or more", outputVariation);
  if (!(Number.isInteger(outputMaxTokens) && outputMaxTokens >= 1)) {
    refuse("outputMaxTokens", "must be a whole number, 1 or more", outputMaxTokens);
  }
  if (!(tailShare >= 0 && tailShare <= 1)) refuse("tailShare", "must be between 0 and 1", tailShare);
  if (!(starterSkew >= 0 && starterSkew < Infinity)) refuse("starterSkew", "must be 0 or more", starterSkew);
  if (parameters.starterTokens[1] + parameters.openingTokens[1] < 1) {
    refuse("starterTokens", "and openingTokens must leave a prompt of at least one token", parameters.starterTokens);
  }
  if (!(parameters.contextTokens >= 2)) refuse("contextTokens", "must be 2 or more", parameters.contextTokens);
}

/** Turns a conversation may have at most; request ids count turns below it. */
export const MOST_TURNS = 64;

function refuse(name: string, requirement: string, value: unknown): never {
  throw new WarmpathError("WP_INVALID_INPUT", `${name} ${requirement}, got ${JSON.stringify(value)}`);
}
