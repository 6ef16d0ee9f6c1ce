import { NS_PER_MS } from "../../core/clock.ts";
import type { Rng } from "../../core/rng.ts";
import { drawBetween, drawTokens, spreadOver, ZipfChoice } from "../draw.ts";
import type { Segment } from "../prompt.ts";
import type { SessionScript, SessionSupply, TurnScript } from "../request.ts";
import { checkConversationParameters, type ConversationParameters, MOST_TURNS } from "./parameters.ts";

/** Ids below are starters; a conversation's own segments are numbered from here on. */
const FIRST_OWN_SEGMENT = 2 ** 24;
const SEGMENTS_PER_TURN = 2;

/**
 * Conversations without end, each fixed by the generator's seed and its number alone: whatever the policy, and however
 * fast the answers, conversation 17 says the same.
 */
export class Conversations implements SessionSupply {
  readonly parameters: ConversationParameters;
  readonly #rng: Rng;
  readonly #starterTokens: readonly number[];
  readonly #starterChoice: ZipfChoice;
  readonly #sessions: number;

  /** `sessions` bounds how many there are; without end unless told. */
  constructor(parameters: ConversationParameters, rng: Rng, sessions: number = Infinity) {
    checkConversationParameters(parameters);
    this.parameters = parameters;
    this.#rng = rng.stream("conversations");
    this.#sessions = sessions;
    this.#starterTokens = spreadOver(rng.stream("starters"), parameters.starters, parameters.starterTokens);
    this.#starterChoice = new ZipfChoice(parameters.starters, parameters.starterSkew);
  }

  session(ordinal: number): SessionScript | undefined {
    if (ordinal >= this.#sessions) return undefined;
    const { parameters } = this;
    const rng = this.#rng.stream(ordinal);
    const starter = this.#starterChoice.draw(rng);
    const planned = drawBetween(rng, parameters.turns);
    const isTail = rng.uniform() < parameters.tailShare;
    const documentTokens = drawBetween(rng, parameters.tailTokens);
    const turns: TurnScript[] = [];
    let tokens = 0;
    for (let turn = 0; turn < planned; turn++) {
      // A stream per turn: a change of one turn's parameters leaves the others as they were.
      const turnRng = rng.stream(turn);
      const ownTokens = drawBetween(turnRng, turn === 0 ? parameters.openingTokens : parameters.userTokens);
      const outputTokens = this.#drawOutput(turnRng, turn);
      const thinkNs = turn === 0 ? 0 : drawBetween(turnRng, parameters.thinkMs) * NS_PER_MS;
      const own: Segment = {
        id: ownSegmentId(ordinal, turn, 0),
        tokens: ownTokens + (turn === 0 && isTail ? documentTokens : 0),
      };
      const segments = turn === 0 ? [{ id: starter, tokens: this.#starterTokens[starter] }, own] : [own];
      for (const segment of segments) tokens += segment.tokens;
      if (turn > 0 && tokens + outputTokens > parameters.contextTokens) break;
      tokens += outputTokens;
      turns.push({
        requestId: ordinal * MOST_TURNS + turn,
        prompt: { kind: "append", segments },
        outputTokens,
        answerId: ownSegmentId(ordinal, turn, 1),
        thinkNs,
      });
    }
    return { session: ordinal, name: `conversation-${ordinal}`, turns };
  }

  #drawOutput(rng: Rng, turn: number): number {
    const { outputTokensByTurn, outputVariation, outputMaxTokens } = this.parameters;
    const mean = outputTokensByTurn[Math.min(turn, outputTokensByTurn.length - 1)];
    return drawTokens(rng, mean, outputVariation, outputMaxTokens);
  }
}

function ownSegmentId(session: number, turn: number, role: 0 | 1): number {
  return FIRST_OWN_SEGMENT + (session * MOST_TURNS + turn) * SEGMENTS_PER_TURN + role;
}
