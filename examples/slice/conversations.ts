import { NS_PER_MS, NS_PER_SECOND } from "../../src/core/clock.ts";
import { Rng } from "../../src/core/rng.ts";
import type { SessionSupply, TurnScript } from "../../src/workload/request.ts";

const TURNS = 5;
const SYSTEM_SEGMENT = 1;

/** A few conversations of five turns that share a system prompt; each turn sends all before it again. */
export function conversations(count: number, seed: number): SessionSupply {
  return {
    session(ordinal) {
      if (ordinal >= count) return undefined;
      const draw = new Rng(seed).stream("slice").stream(ordinal);
      const turns = Array.from({ length: TURNS }, (_, turn): TurnScript => {
        const requestId = ordinal * TURNS + turn;
        const question = { id: 1000 + 2 * requestId, tokens: 100 + draw.below(300) };
        return {
          requestId,
          prompt: {
            kind: "append",
            segments: turn === 0 ? [{ id: SYSTEM_SEGMENT, tokens: 200 }, question] : [question],
          },
          outputTokens: 20 + draw.below(60),
          answerId: 1001 + 2 * requestId,
          thinkNs: draw.below(2000) * NS_PER_MS,
        };
      });
      return { session: ordinal, name: `session-${ordinal}`, startNs: ordinal * NS_PER_SECOND, turns };
    },
  };
}
