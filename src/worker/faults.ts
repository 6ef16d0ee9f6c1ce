import { z } from "zod";
import { Rng } from "../core/rng.ts";

const count = z.int().min(1);

/** What can be made to go wrong, for tests of whoever stands in front of a worker; `null` mends it again. */
export const faultsSchema: z.ZodType<FaultChanges> = z.strictObject({
  crash: z.int().min(0).nullable().optional(),
  hang: z.enum(["engine", "all"]).nullable().optional(),
  slow: z.number().min(1).max(1e6).nullable().optional(),
  refuse: z.int().min(400).max(599).nullable().optional(),
  "cut-stream": count.nullable().optional(),
  "drop-events": z.number().gt(0).max(1).nullable().optional(),
});

/** The faults that are on. */
export interface Faults {
  /** The process ends without a word once so many more tokens have been streamed; 0 is at once. */
  readonly crash: number | null;
  /** The engine stands still, and with `all` no request of any kind is answered. */
  readonly hang: "engine" | "all" | null;
  /** Factor by which every step takes longer. */
  readonly slow: number | null;
  /** Status with which every request for an answer is refused. */
  readonly refuse: number | null;
  /** Connections are cut once an answer has so many tokens. */
  readonly "cut-stream": number | null;
  /** Share of KV events that are lost on their way. */
  readonly "drop-events": number | null;
}

export type FaultChanges = { readonly [Name in keyof Faults]?: Faults[Name] | undefined };

/** Each fault as it is switched on by its name alone. */
export const PLAIN_FAULTS: Readonly<{ [Name in keyof Faults]: NonNullable<Faults[Name]> | undefined }> = {
  crash: 0,
  hang: "engine",
  slow: undefined,
  refuse: 503,
  "cut-stream": 1,
  "drop-events": 1,
};

const NO_FAULTS: Faults = {
  crash: null,
  hang: null,
  slow: null,
  refuse: null,
  "cut-stream": null,
  "drop-events": null,
};

/** What the switches act on, beside the requests that look at them. */
export interface FaultTargets {
  /** 1 is the usual speed of the engine, 0 stands still. */
  setPace(pace: number): void;
  /** Ends the process, or what stands for it. */
  crash(): void;
}

/** The fault switches of one worker. */
export class FaultSwitches {
  readonly #targets: FaultTargets;
  readonly #rng = new Rng(0).stream("dropped-events");
  #faults: Faults = NO_FAULTS;
  #tokensToCrash = Number.POSITIVE_INFINITY;

  constructor(targets: FaultTargets) {
    this.#targets = targets;
  }

  get current(): Faults {
    return this.#faults;
  }

  /** Turns some switches; those not named stay. */
  turn(changes: FaultChanges): void {
    const named = Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined));
    this.#faults = { ...this.#faults, ...named };
    const { hang, slow, crash } = this.#faults;
    this.#targets.setPace(hang === null ? 1 / (slow ?? 1) : 0);
    if (changes.crash === undefined) return;
    this.#tokensToCrash = crash ?? Number.POSITIVE_INFINITY;
    if (crash === 0) this.#targets.crash();
  }

  /** Counts tokens on their way to a client, and crashes with the last one that was allowed. */
  streamed(tokens: number): void {
    this.#tokensToCrash -= tokens;
    if (this.#tokensToCrash <= 0) this.#targets.crash();
  }

  /** Whether the next KV event is lost. */
  dropsEvent(): boolean {
    const share = this.#faults["drop-events"];
    return share !== null && this.#rng.uniform() < share;
  }
}
