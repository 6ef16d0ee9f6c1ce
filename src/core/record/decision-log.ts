import type { Nanoseconds } from "../clock.ts";
import type { CandidateView } from "../policy/types.ts";
import type { DecisionRecord, RecordedCandidate } from "./decision-record.ts";
import { LearnedRing } from "./learned-ring.ts";

/** `summary` keeps the choice, the runner-up and the margin; `full` keeps every candidate too. */
export type RecordDetail = "summary" | "full";

export interface DecisionLogOptions {
  readonly detail: RecordDetail;
  /** Records kept; the oldest goes first. */
  readonly capacity: number;
  /** Candidate rows kept in all, 64 bytes each: with 64 workers the default holds 10,000 full records. */
  readonly candidateRows?: number;
}

const COLUMNS = 16;
const DEFAULT_ROWS = 640_000;
/** Room for what was learned: of the fleet for each record, and of each candidate. */
const LEARNED_PER_RECORD = 16;
const LEARNED_PER_CANDIDATE = 5;

/** What the log keeps of a record as an object; the candidates lie in the ring of rows. */
export type LoggedDecision = Omit<DecisionRecord, "candidates" | "learned" | "observedCachedTokens" | "firstTokenNs">;

/** The part of a decision that says what was chosen. */
export type ChoiceMade = Pick<
  LoggedDecision,
  "chosen" | "runnerUp" | "margin" | "tied" | "indexState" | "predictedCachedTokens"
>;

/** What a refusal has in place of a choice. */
export const NOBODY_CHOSEN: ChoiceMade = {
  chosen: null,
  runnerUp: null,
  margin: 0,
  tied: 0,
  indexState: null,
  predictedCachedTokens: 0,
};

interface Entry {
  readonly decision: LoggedDecision;
  observedCachedTokens: number | undefined;
  firstTokenNs: Nanoseconds | undefined;
  /** Position of its first candidate in the endless sequence of rows, or -1. */
  readonly firstRow: number;
  /** The same for what the policy had learned. */
  readonly firstLearned: number;
  readonly learnedNumbers: number;
  /** Names by replica; its number may be given to another later. */
  readonly names: readonly string[];
}

/**
 * The last decisions. Candidates are written as columns into one ring of rows, so that keeping a full record costs a copy and
 * no allocation; rows that newer records have overwritten are gone, their summaries stay.
 */
export class DecisionLog {
  readonly detail: RecordDetail;
  readonly #capacity: number;
  readonly #ring: Entry[] = [];
  readonly #rows: Int32Array;
  readonly #rowCount: number;
  readonly #learned: LearnedRing;
  #nextRow = 0;
  #nextDecision = 1;

  constructor(options: DecisionLogOptions) {
    this.detail = options.detail;
    this.#capacity = options.capacity;
    this.#rowCount = options.detail === "full" ? (options.candidateRows ?? DEFAULT_ROWS) : 0;
    // Written once now, or every decision until the ring is full would wait for the system to hand out a page.
    this.#rows = new Int32Array(this.#rowCount * COLUMNS).fill(0);
    this.#learned = new LearnedRing(this.#rowCount * LEARNED_PER_CANDIDATE + this.#capacity * LEARNED_PER_RECORD);
  }

  /** The number the next decision will have. */
  get nextDecision(): number {
    return this.#nextDecision;
  }

  /** Keeps a decision, the view it was made from and what the policy had learned; `names` are the replicas' names by index. */
  add(decision: LoggedDecision, view: CandidateView, names: readonly string[], learned?: ArrayLike<number>): void {
    const isFull = this.detail === "full" && view.count <= this.#rowCount;
    const firstRow = isFull ? this.#copyRows(view) : -1;
    const entry = {
      decision,
      observedCachedTokens: undefined,
      firstTokenNs: undefined,
      firstRow,
      firstLearned: learned === undefined ? -1 : this.#learned.keep(learned),
      learnedNumbers: learned?.length ?? 0,
      names,
    };
    this.#ring[decision.decision % this.#capacity] = entry;
    this.#nextDecision = decision.decision + 1;
  }

  firstToken(decision: number, sinceDecidedNs: Nanoseconds): void {
    const entry = this.#entry(decision);
    if (entry !== undefined) entry.firstTokenNs = sinceDecidedNs;
  }

  observed(decision: number, cachedTokens: number): void {
    const entry = this.#entry(decision);
    if (entry !== undefined) entry.observedCachedTokens = cachedTokens;
  }

  /** A record by its number, or undefined if it is gone. */
  get(decision: number): DecisionRecord | undefined {
    const entry = this.#entry(decision);
    if (entry === undefined) return undefined;
    const { firstRow, names, observedCachedTokens, firstTokenNs, firstLearned, learnedNumbers } = entry;
    const isKept = firstRow >= 0 && firstRow >= this.#nextRow - this.#rowCount;
    const candidates = isKept ? this.#candidates(firstRow, entry.decision.candidateCount, names) : undefined;
    const learned = this.#learned.read(firstLearned, learnedNumbers);
    return { ...entry.decision, learned, observedCachedTokens, firstTokenNs, candidates };
  }

  /** The newest records first, at most `count`. */
  latest(count: number): DecisionRecord[] {
    const records: DecisionRecord[] = [];
    for (let decision = this.#nextDecision - 1; records.length < count; decision--) {
      const record = this.get(decision);
      if (record === undefined) break;
      records.push(record);
    }
    return records;
  }

  /** Every attempt to place a request that is still kept, the first one first. */
  attempts(request: string): DecisionRecord[] {
    const decisions = this.#ring.flatMap(({ decision }) => (decision.request === request ? [decision.decision] : []));
    return decisions.sort((a, b) => a - b).flatMap((decision) => this.get(decision) ?? []);
  }

  #entry(decision: number): Entry | undefined {
    const entry = this.#ring[decision % this.#capacity];
    return entry?.decision.decision === decision ? entry : undefined;
  }

  #copyRows(view: CandidateView): number {
    const { candidates, load } = view;
    const rows = this.#rows;
    // A record's rows never wrap, so that they can be read in one go.
    const left = this.#rowCount - (this.#nextRow % this.#rowCount);
    if (left < view.count) this.#nextRow += left;
    const firstRow = this.#nextRow;
    let at = (firstRow % this.#rowCount) * COLUMNS;
    for (let i = 0; i < view.count; i++, at += COLUMNS) {
      const replica = candidates[i];
      rows[at] = replica;
      rows[at + 1] = view.cachedBlocks[replica];
      rows[at + 2] = view.confirmedBlocks[replica];
      rows[at + 3] = view.hostBlocks[replica];
      rows[at + 4] = view.diskBlocks[replica];
      rows[at + 5] = view.activePrefixBlocks[replica];
      rows[at + 6] = load.inFlight[replica];
      rows[at + 7] = load.decoding[replica];
      rows[at + 8] = load.pendingPrefillTokens[replica];
      rows[at + 9] = load.contextTokens[replica];
      rows[at + 10] = load.activeBlocks[replica];
      rows[at + 11] = load.batchSlots[replica];
      rows[at + 12] = load.kvBlocks[replica];
      rows[at + 13] = load.stepTokens[replica];
      rows[at + 14] = view.lastChosen[replica];
      rows[at + 15] = load.newBlocks[replica];
    }
    this.#nextRow += view.count;
    return firstRow;
  }

  #candidates(firstRow: number, count: number, names: readonly string[]): RecordedCandidate[] {
    const rows = this.#rows;
    const first = (firstRow % this.#rowCount) * COLUMNS;
    return Array.from({ length: count }, (_, i): RecordedCandidate => {
      const at = first + i * COLUMNS;
      return {
        replica: names[rows[at]],
        cachedBlocks: rows[at + 1],
        confirmedBlocks: rows[at + 2],
        hostBlocks: rows[at + 3],
        diskBlocks: rows[at + 4],
        activePrefixBlocks: rows[at + 5],
        inFlight: rows[at + 6],
        decoding: rows[at + 7],
        pendingPrefillTokens: rows[at + 8],
        contextTokens: rows[at + 9],
        activeBlocks: rows[at + 10],
        batchSlots: rows[at + 11],
        kvBlocks: rows[at + 12],
        stepTokens: rows[at + 13],
        lastChosen: rows[at + 14],
        newBlocks: rows[at + 15],
      };
    });
  }
}
