import type { Cell } from "../experiment/cells.ts";
import type { CellOrder } from "../experiment/types.ts";
import type { ArmFacts, CacheStart } from "../results/types.ts";
import type { SampledPage } from "../sampler/sampler.ts";

/** Where live cells run: something that can be put into the state of an arm, and driven over HTTP. */
export interface LiveTarget {
  /** As results.json names it. */
  readonly name: string;
  /** The order that suits it, where the file does not say one: switching arms may be cheap or dear. */
  readonly order: CellOrder;
  /** Has the cell's arm serve, with the caches that the experiment asks for, and waits until it does. */
  open(cell: Cell, signal: AbortSignal): Promise<OpenCell>;
  /** Puts everything back. Called once at the end, after a failure or an interrupt too. */
  close(): Promise<void>;
}

/** A target that is ready for a cell. */
export interface OpenCell {
  readonly url: string;
  readonly model: string;
  readonly prompts: "chat" | "completion";
  /** Added to every request. */
  readonly body: Readonly<Record<string, unknown>>;
  /** Names of the workers; empty where nobody tells them. */
  readonly workers: readonly string[];
  readonly pages: readonly SampledPage[];
  /** How caches were emptied, where they had to be. */
  readonly emptiedBy: CacheStart["enforcedBy"];
  readonly facts: ArmFacts;
  /** What changes when a worker begins anew, by worker; undefined where nobody tells. */
  identities(): Promise<ReadonlyMap<string, string> | undefined>;
  /** KV events that the router has applied so far; undefined where nobody tells. */
  eventsApplied(): Promise<number | undefined>;
  /** The cell is over. */
  close(): Promise<void>;
}
