import { Rng } from "../core/rng.ts";
import type { WorkloadRequest } from "../workload/request.ts";
import { type Starter, topicOf } from "./starters.ts";
import { message, quoted } from "./symbolic-prompts.ts";
import type { CompletedAnswer, PromptWriter, WrittenPrompt } from "./types.ts";
import { BuiltInUser } from "./user-model/built-in.ts";
import type { UserModel } from "./user-model/types.ts";

/** What a user asks about a text it brings; behind the text, so that conversations about one text share all of it. */
const OPENINGS: readonly string[] = [
  "Explain the text above to somebody who is new to the subject, step by step, and say why each step matters.",
  "Summarise the text above for an engineer who has to build on it, and elaborate on what it leaves out.",
  "What are the main ideas of the text above, how do they depend on each other, and where would they break down?",
  "Explain the hardest part of the text above in detail, with an example that is worked through to its end.",
  "Describe the trade-offs in the text above, and tell me which of them matter most in practice and why.",
  "Read the text above and explain how it works underneath: what happens first, what follows, and what it costs.",
];

const TRADES: readonly string[] =
  "nurse teacher pilot carpenter lawyer chemist farmer translator librarian electrician economist sailor".split(" ");
const MOST_YEARS = 40;
const MOST_MINUTES = 60;

interface Conversation {
  readonly starter: number;
  /** Messages so far as JSON, with commas between them. */
  readonly messages: string;
}

/** Conversations about texts: opens with a starter, and asks on with what a user model says to the answer. */
export class StarterPrompts implements PromptWriter {
  readonly #starters: readonly { readonly topic: string; readonly escapedText: string }[];
  readonly #rng: Rng;
  readonly #user: UserModel;
  readonly #fallback: BuiltInUser;
  readonly #conversations = new Map<number, Conversation>();
  #userFailures = 0;

  /** `user` is the built-in one unless told, and that one takes over where another fails. */
  constructor(starters: readonly Starter[], seed: number, user?: UserModel) {
    this.#starters = starters.map((one) => ({ topic: topicOf(one), escapedText: quoted(one.text) }));
    this.#rng = new Rng(seed).stream("openings");
    this.#fallback = new BuiltInUser(seed);
    this.#user = user ?? this.#fallback;
  }

  /** Follow-ups that the user model failed to give. */
  get userFailures(): number {
    return this.#userFailures;
  }

  write(request: WorkloadRequest): WrittenPrompt {
    const before = this.#conversations.get(request.session);
    const { starter, messages } = before ?? this.#open(request);
    if (!request.isLastTurn) this.#conversations.set(request.session, { starter, messages });
    return { kind: "chat", json: `[${messages}]` };
  }

  needsAnswer(request: WorkloadRequest): boolean {
    return !request.isLastTurn;
  }

  async answered(request: WorkloadRequest, answer: CompletedAnswer, signal: AbortSignal): Promise<void> {
    const conversation = this.#conversations.get(request.session);
    if (conversation === undefined) return;
    const { starter, messages } = conversation;
    const said = `${messages},${message("assistant", answer.escapedText)}`;
    const { session, turn } = request;
    const { topic } = this.#starters[starter];
    const asked = await this.#ask({ session, turn, topic, answer: unquoted(answer.escapedText) }, signal);
    // It may have been given up while the user was thinking.
    if (!this.#conversations.has(session)) return;
    this.#conversations.set(session, { starter, messages: `${said},${message("user", quoted(asked))}` });
  }

  forget(session: number): void {
    this.#conversations.delete(session);
  }

  async #ask(read: Parameters<UserModel["followUp"]>[0], signal: AbortSignal): Promise<string> {
    try {
      return await this.#user.followUp(read, signal);
    } catch {
      if (!signal.aborted) this.#userFailures += 1;
      return this.#fallback.followUp(read);
    }
  }

  #open({ session, prompt }: WorkloadRequest): Conversation {
    const starter = prompt.ids[0] % this.#starters.length;
    const rng = this.#rng.stream(session);
    const opening = OPENINGS[rng.below(OPENINGS.length)];
    // No two people ask alike: an engine that answers equal questions equally must not find one's answer for the other.
    const asker = `I am a ${TRADES[rng.below(TRADES.length)]} with ${1 + rng.below(MOST_YEARS)} years behind me`;
    const asked = `${asker} and ${5 + rng.below(MOST_MINUTES)} minutes for this. ${opening}`;
    const text = `${this.#starters[starter].escapedText}\\n\\n${quoted(asked)}`;
    return { starter, messages: message("user", text) };
  }
}

function unquoted(escapedText: string): string {
  return JSON.parse(`"${escapedText}"`) as string;
}
