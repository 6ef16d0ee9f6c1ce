import type { Nanoseconds } from "./clock.ts";
import type { LoadModel } from "./load/load-model.ts";
import type { PromptsUnderWay } from "./load/prompts-under-way.ts";
import type { Match } from "./kv-index/types.ts";
import type { CandidateView } from "./policy/types.ts";
import type { LoadColumns } from "./replica.ts";
import type { RoutedRequest } from "./routed-request.ts";
import { hashString, mixPair } from "./rng.ts";

/** Stands for no replica where a replica's index is expected. */
export const NO_REPLICA = -1;

/** What changes from one decision to the next, besides the candidates. */
export interface Circumstances {
  readonly nowNs: Nanoseconds;
  readonly attempt: number;
  readonly expectedOutputTokens: number;
  readonly mayHold: boolean;
  /** Undefined where nobody is asked, because the request is refused. */
  readonly match: Match | undefined;
  readonly tiersSeen: number;
  readonly activePrefix: Int32Array | undefined;
}

/** The router's one view, filled in place for every decision so that deciding allocates nothing. */
export class PlacementView implements CandidateView {
  nowNs: Nanoseconds = 0;
  promptTokens = 0;
  promptBlocks = 0;
  readonly blockTokens: number;
  expectedOutputTokens = 0;
  sessionKey = 0;
  chance = 0;
  mayHold = false;
  count = 0;
  readonly candidates: Int32Array;
  readonly key: Uint32Array;
  readonly lastChosen: Float64Array;
  cachedBlocks: Int32Array;
  confirmedBlocks: Int32Array;
  readonly hostBlocks: Int32Array;
  readonly diskBlocks: Int32Array;
  activePrefixBlocks: Int32Array;
  readonly load: LoadColumns;
  readonly #seed: number;
  readonly #underWay: PromptsUnderWay;
  readonly #none: Int32Array;
  #sequence: Uint32Array = new Uint32Array(0);

  constructor(
    options: { readonly maxReplicas: number; readonly blockTokens: number; readonly seed: number },
    key: Uint32Array,
    { columns, underWay }: Pick<LoadModel, "columns" | "underWay">,
  ) {
    const { maxReplicas } = options;
    this.blockTokens = options.blockTokens;
    this.#seed = options.seed;
    this.candidates = new Int32Array(maxReplicas);
    this.key = key;
    this.lastChosen = new Float64Array(maxReplicas);
    this.#none = new Int32Array(maxReplicas);
    this.cachedBlocks = this.#none;
    this.confirmedBlocks = this.#none;
    this.hostBlocks = new Int32Array(maxReplicas);
    this.diskBlocks = new Int32Array(maxReplicas);
    this.activePrefixBlocks = this.#none;
    this.load = columns;
    this.#underWay = underWay;
  }

  clearCandidates(): void {
    this.count = 0;
  }

  addCandidate(replica: number): void {
    this.candidates[this.count++] = replica;
  }

  prefixKey(blocks: number): number {
    return mixPair(this.#sequence[2 * blocks - 2], this.#sequence[2 * blocks - 1]);
  }

  settledBlocks(replica: number): number {
    const cached = this.cachedBlocks[replica];
    const confirmed = this.confirmedBlocks[replica];
    if (confirmed === cached) return confirmed;
    return Math.max(confirmed, this.#underWay.settledBlocks(replica, this.#sequence, cached));
  }

  describe(request: RoutedRequest, now: Circumstances): void {
    this.nowNs = now.nowNs;
    this.promptTokens = request.promptTokens;
    this.promptBlocks = request.blocks;
    this.#sequence = request.sequence;
    this.expectedOutputTokens = now.expectedOutputTokens;
    this.mayHold = now.mayHold;
    this.sessionKey = sessionKey(request);
    // Drawn from the request's name, not from a running generator: what else is routed does not change a request's luck.
    this.chance = mixPair(mixPair(this.#seed, hashString(request.id)), now.attempt);
    // The device lanes of a match come first and are numbered like replicas.
    this.cachedBlocks = now.match?.cached ?? this.#none;
    this.confirmedBlocks = now.match?.confirmed ?? this.#none;
    this.activePrefixBlocks = now.activePrefix ?? this.#none;
    if (now.tiersSeen > 1 && now.match !== undefined) this.#describeTiers(now.match, now.tiersSeen);
  }

  /** A slower tier counts for what it holds beyond the faster ones; blocks are not added up over tiers. */
  #describeTiers(match: Match, tiersSeen: number): void {
    const maxReplicas = this.candidates.length;
    for (let i = 0; i < this.count; i++) {
      const replica = this.candidates[i];
      const device = match.cached[replica];
      const host = Math.max(device, match.cached[maxReplicas + replica]);
      const disk = tiersSeen > 2 ? Math.max(host, match.cached[2 * maxReplicas + replica]) : host;
      this.hostBlocks[replica] = host - device;
      this.diskBlocks[replica] = disk - host;
    }
  }
}

/** The session's key, or that of the prompt's first blocks, which is what turns of one conversation have in common. */
function sessionKey(request: RoutedRequest): number {
  if (request.session !== undefined) return hashString(request.session);
  const last = Math.min(request.blocks, 4) - 1;
  return last < 0 ? hashString(request.id) : mixPair(request.sequence[2 * last], request.sequence[2 * last + 1]);
}
