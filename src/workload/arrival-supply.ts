import type { Nanoseconds } from "../core/clock.ts";
import type { Rng } from "../core/rng.ts";
import { type ArrivalProcess, arrivalTimes } from "./arrivals.ts";
import type { SessionScript, SessionSupply } from "./request.ts";

/** A supply whose sessions begin when an arrival process says, for an open loop. */
export class ArrivalSupply implements SessionSupply {
  readonly #supply: SessionSupply;
  readonly #nextTime: () => Nanoseconds;
  readonly #times: Nanoseconds[] = [];

  constructor(supply: SessionSupply, process: ArrivalProcess, rng: Rng) {
    this.#supply = supply;
    this.#nextTime = arrivalTimes(process, rng);
  }

  session(ordinal: number): SessionScript | undefined {
    const script = this.#supply.session(ordinal);
    if (script === undefined) return undefined;
    while (this.#times.length <= ordinal) this.#times.push(this.#nextTime());
    return { ...script, startNs: this.#times[ordinal] };
  }
}
