import type { Clock, Nanoseconds } from "../core/clock.ts";
import type {
  CandidateView,
  Choice,
  Explanation,
  Policy,
  PolicyParameters,
  PolicySignal,
} from "../core/policy/types.ts";

/** A policy that notes when it is asked and for how long: where, inside a routing decision, the time goes. */
export class TimedPolicy implements Policy {
  readonly name: string;
  readonly parameters: PolicyParameters;
  readonly usesActivePrefix: boolean;
  readonly learned?: (view: CandidateView) => ArrayLike<number>;
  /** When it was first asked since `restart`; undefined if it was not. */
  askedNs: Nanoseconds | undefined;
  choosingNs: Nanoseconds = 0;
  readonly #policy: Policy;
  readonly #clock: Clock;

  constructor(policy: Policy, clock: Clock) {
    this.#policy = policy;
    this.#clock = clock;
    this.name = policy.name;
    this.parameters = policy.parameters;
    this.usesActivePrefix = policy.usesActivePrefix;
    if (policy.learned !== undefined) this.learned = (view) => policy.learned?.(view) ?? [];
  }

  /** Forgets what was noted. */
  restart(): void {
    this.askedNs = undefined;
    this.choosingNs = 0;
  }

  choose(view: CandidateView): Choice {
    const startedNs = this.#clock.nowNs();
    this.askedNs ??= startedNs;
    const choice = this.#policy.choose(view);
    this.choosingNs += this.#clock.nowNs() - startedNs;
    return choice;
  }

  explain(view: CandidateView, learned?: ArrayLike<number>): Explanation {
    return this.#policy.explain(view, learned);
  }

  observe(signal: PolicySignal): void {
    this.#policy.observe?.(signal);
  }
}
