/** What was seen of one worker; what nobody could tell is undefined. */
export interface WorkerFacts {
  readonly name: string;
  readonly url: string;
  readonly isReachable: boolean;
  readonly isHealthy: boolean;
  /** What the gateway makes of it, such as `ready`. */
  readonly phase: string | undefined;
  readonly models: readonly string[] | undefined;
  readonly blockTokens: number | undefined;
  readonly kvBlocks: number | undefined;
  readonly batchSlots: number | undefined;
  /** Tokens of one text, as the engine makes them. */
  readonly tokens: readonly number[] | undefined;
  /** How far the gateway trusts its index of this worker. */
  readonly indexState: string | undefined;
  /** Events that came while a prompt was computed that nobody had seen before. */
  readonly newEvents: number | undefined;
  /** Blocks of that prompt, and how many of them the gateway then found on this worker. */
  readonly probeBlocks: number;
  readonly matchedBlocks: number | undefined;
  /** The same prompt again, on this worker: what the engine found. */
  readonly repeatedCachedTokens: number | undefined;
  /** Its clock minus ours; whole seconds are all that is known. */
  readonly clockAheadMs: number | undefined;
}

/** What was seen of a fleet and the gateway before it. */
export interface FleetFacts {
  readonly gatewayUrl: string;
  readonly isGatewayReachable: boolean;
  /** Tokens in a block, as the gateway counts them. */
  readonly blockTokens: number | undefined;
  /** Where the gateway's tokens come from. */
  readonly tokenizer: string | undefined;
  /** Tokens of the text that engines were asked about, as the gateway makes them; undefined where it only guesses. */
  readonly tokens: readonly number[] | undefined;
  /** Why the gateway's tokens could not be made here. */
  readonly tokensProblem?: string | undefined;
  readonly workers: readonly WorkerFacts[];
}
