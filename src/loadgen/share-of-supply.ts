import type { SessionScript, SessionSupply } from "../workload/request.ts";

/** Every n-th session of a supply: together, the shares of n processes are the supply, each session once. */
export class ShareOfSupply implements SessionSupply {
  readonly #supply: SessionSupply;
  readonly #index: number;
  readonly #of: number;

  constructor(supply: SessionSupply, index: number, of: number) {
    this.#supply = supply;
    this.#index = index;
    this.#of = of;
  }

  session(ordinal: number): SessionScript | undefined {
    return this.#supply.session(ordinal * this.#of + this.#index);
  }
}
