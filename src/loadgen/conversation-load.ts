import { WarmpathError } from "../core/errors.ts";
import type { Nanoseconds } from "../core/clock.ts";
import { Rng } from "../core/rng.ts";
import { ArrivalSupply } from "../workload/arrival-supply.ts";
import type { ArrivalProcess } from "../workload/arrivals.ts";
import { ClosedLoop } from "../workload/closed-loop.ts";
import { Conversations } from "../workload/conversation/conversations.ts";
import { conversationPreset } from "../workload/conversation/presets.ts";
import type { Range } from "../workload/draw.ts";
import type { SessionScript, SessionSupply } from "../workload/request.ts";
import { Schedule } from "../workload/schedule.ts";
import { ShareOfSupply } from "./share-of-supply.ts";
import { StarterPrompts } from "./starter-prompts.ts";
import type { Starter } from "./starters.ts";
import type { LoadSource } from "./types.ts";
import type { UserModel } from "./user-model/types.ts";

/** How conversations begin: so many at a time, or at moments that do not depend on the answers. */
export type LoadPace =
  | {
      readonly kind: "closed";
      readonly concurrency: number;
      /** Most requests per second. */
      readonly maxRateRps?: number | undefined;
      readonly rampNs?: Nanoseconds | undefined;
    }
  | { readonly kind: "open"; readonly arrivals: ArrivalProcess };

/** Conversations about starters. */
export interface ConversationLoadOptions {
  readonly starters: readonly Starter[];
  readonly pace: LoadPace;
  readonly seed: number;
  /** Turns of a conversation; 3 to 5 unless told. */
  readonly turns?: Range | undefined;
  /** Most tokens of every answer; those of the H200 study by turn, about 830, unless told. */
  readonly maxTokens?: number | undefined;
  /** Time between an answer and the next turn, beside what the user model takes; 300 to 1,000 ms unless told. */
  readonly thinkMs?: Range | undefined;
  /** The built-in one unless told. */
  readonly user?: UserModel | undefined;
  /** Only every n-th conversation, for one of several processes. */
  readonly share?: { readonly index: number; readonly of: number } | undefined;
}

/** The two parts of a run's options that make it one of conversations. */
export interface ConversationLoad {
  readonly source: LoadSource;
  readonly prompts: StarterPrompts;
}

/** Makes conversations: the n-th has the same starter, turns and lengths whoever asks, whenever, in whichever process. */
export function conversationLoad(options: ConversationLoadOptions): ConversationLoad {
  const { starters, pace, seed, user, share } = options;
  if (starters.length === 0) throw new WarmpathError("WP_INVALID_INPUT", "there are no starters");
  const rng = new Rng(seed);
  const prompts = new StarterPrompts(starters, seed, user);
  const planned = new SizedConversations(plannedConversations(options, rng), starters);
  const shared = (supply: SessionSupply): SessionSupply =>
    share === undefined ? supply : new ShareOfSupply(supply, share.index, share.of);
  if (pace.kind === "open") {
    return { source: new Schedule(shared(new ArrivalSupply(planned, pace.arrivals, rng))), prompts };
  }
  const source = new ClosedLoop(shared(planned), {
    concurrency: pace.concurrency,
    surplusLeaves: "after-turn",
    onGivenUp: (session) => prompts.forget(session),
    ...(pace.maxRateRps !== undefined && { maxRateRps: pace.maxRateRps }),
    ...(pace.rampNs !== undefined && { rampNs: pace.rampNs }),
  });
  return { source, prompts };
}

function plannedConversations(options: ConversationLoadOptions, rng: Rng): Conversations {
  const { starters, turns, thinkMs, maxTokens } = options;
  const { parameters } = conversationPreset("multi-turn");
  return new Conversations(
    {
      ...parameters,
      starters: starters.length,
      tailShare: 0,
      tailTokens: [0, 0],
      ...(turns !== undefined && { turns }),
      ...(thinkMs !== undefined && { thinkMs }),
      ...(maxTokens !== undefined && {
        outputTokensByTurn: [maxTokens],
        outputVariation: 0,
        outputMaxTokens: maxTokens,
      }),
    },
    rng,
  );
}

const CHARACTERS_PER_TOKEN = 4;

/** The plan with the length of the real starters, as a guess that holds until an engine says how many tokens it saw. */
class SizedConversations implements SessionSupply {
  readonly #plan: Conversations;
  readonly #starterTokens: readonly number[];

  constructor(plan: Conversations, starters: readonly Starter[]) {
    this.#plan = plan;
    this.#starterTokens = starters.map(({ text }) => Math.ceil(text.length / CHARACTERS_PER_TOKEN));
  }

  session(ordinal: number): SessionScript | undefined {
    const script = this.#plan.session(ordinal);
    const [first] = script?.turns ?? [];
    if (script === undefined || first?.prompt.kind !== "append") return script;
    const [starter, ...own] = first.prompt.segments;
    const segments = [{ id: starter.id, tokens: this.#starterTokens[starter.id] }, ...own];
    return { ...script, turns: [{ ...first, prompt: { kind: "append", segments } }, ...script.turns.slice(1)] };
  }
}
