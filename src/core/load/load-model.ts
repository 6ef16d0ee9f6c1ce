import type { Nanoseconds } from "../clock.ts";
import { WarmpathError } from "../errors.ts";
import type { LoadColumns, ReplicaSpec } from "../replica.ts";
import { ActivityList, type Reservation } from "./activity-list.ts";
import { DrainRates } from "./drain-rates.ts";
import { capacityColumn, clearLoad, createLoadColumns } from "./load-columns.ts";
import type { EndedReservation, FirstToken, Growth, LoadDescription, ReportedLoad } from "./load-description.ts";
import { PromptsUnderWay } from "./prompts-under-way.ts";
import { PrefillLedger, prefillPairs, workBetween } from "./prefill-ledger.ts";

/** How large the model is, how it counts blocks, and how long a request may be silent. */
export interface LoadModelOptions {
  readonly maxReplicas: number;
  readonly blockTokens: number;
  readonly inactivityNs: Nanoseconds;
}

/** The hashes of a prompt that nobody told. */
const UNKNOWN = new Uint32Array(0);

interface Member {
  readonly spec: ReplicaSpec;
  reported: ReportedLoad | undefined;
  reportedNs: Nanoseconds | undefined;
}

/**
 * The router's own exact view of the fleet's load. A request holds what was reserved for it until it ends, and that is
 * what is given back: engines may observe other numbers, but a sum that is only ever added to and taken from in equal
 * parts cannot drift. All counts are integers, so the columns are exact too.
 */
export class LoadModel {
  readonly columns: LoadColumns;
  readonly drainRates: DrainRates;
  readonly underWay: PromptsUnderWay;
  readonly #blockTokens: number;
  #inactivityNs: Nanoseconds;
  readonly #members: (Member | undefined)[];
  readonly #reservations: Map<string, Reservation> = new Map();
  readonly #activity: ActivityList = new ActivityList();
  readonly #prefills: PrefillLedger = new PrefillLedger();
  #lateSignals = 0;

  constructor(options: LoadModelOptions) {
    requirePositive("maxReplicas", options.maxReplicas);
    requirePositive("blockTokens", options.blockTokens);
    this.columns = createLoadColumns(options.maxReplicas);
    this.drainRates = new DrainRates({ maxReplicas: options.maxReplicas });
    this.underWay = new PromptsUnderWay(options.maxReplicas);
    this.#members = Array.from({ length: options.maxReplicas }, () => undefined);
    this.#blockTokens = options.blockTokens;
    this.#inactivityNs = options.inactivityNs;
  }

  /** Reservations in the whole fleet. */
  get size(): number {
    return this.#reservations.size;
  }

  /** Signals for requests that are not, or no longer, in flight, and reports for replicas that are gone. */
  get lateSignals(): number {
    return this.#lateSignals;
  }

  inFlightRequests(replica: number): number {
    return this.columns.inFlight[replica];
  }

  addReplica(replica: number, spec: ReplicaSpec): void {
    if (!(Number.isInteger(replica) && replica >= 0 && replica < this.#members.length)) {
      const message = `replica ${replica} does not fit: the load model has room for ${this.#members.length}`;
      throw new WarmpathError("WP_CAPACITY_EXCEEDED", message);
    }
    if (this.#members[replica] !== undefined) {
      throw new WarmpathError("WP_INVALID_STATE", `replica ${replica} is already in the load model`);
    }
    this.#members[replica] = { spec, reported: undefined, reportedNs: undefined };
    this.columns.batchSlots[replica] = capacityColumn(spec.batchSlots);
    this.columns.kvBlocks[replica] = capacityColumn(spec.kvBlocks);
    this.columns.stepTokens[replica] = capacityColumn(spec.stepTokens);
  }

  /** Forgets a replica and returns the ids of the requests that were in flight there, in the order they were placed. */
  removeReplica(replica: number): string[] {
    this.#member(replica);
    const ids: string[] = [];
    // A scan: replicas leave rarely, and a list per replica would cost every request.
    for (const reservation of this.#reservations.values()) {
      if (reservation.replica !== replica) continue;
      ids.push(reservation.id);
      this.#reservations.delete(reservation.id);
      this.#activity.remove(reservation);
    }
    this.#members[replica] = undefined;
    this.drainRates.reset(replica);
    this.#prefills.reset(replica);
    this.underWay.clearReplica(replica);
    clearLoad(this.columns, replica);
    return ids;
  }

  /**
   * Takes a request into account from the moment it is placed; choosing a replica without reserving is not possible. `sequence` are
   * the hashes of its prompt, where they are known.
   */
  reserve(
    nowNs: Nanoseconds,
    requestId: string,
    replica: number,
    promptTokens: number,
    cachedTokens: number,
    sequence: Uint32Array = UNKNOWN,
  ): void {
    this.#member(replica);
    requireCount("promptTokens", promptTokens);
    requireCount("cachedTokens", cachedTokens);
    if (cachedTokens > promptTokens) {
      const message = `cachedTokens is ${cachedTokens}, more than the ${promptTokens} of promptTokens`;
      throw new WarmpathError("WP_INVALID_INPUT", message);
    }
    if (this.#reservations.has(requestId)) {
      throw new WarmpathError("WP_DUPLICATE_REQUEST", `request ${requestId} is already in flight`);
    }
    const uncachedTokens = promptTokens - cachedTokens;
    const pairs = prefillPairs(promptTokens, cachedTokens);
    const reservation: Reservation = {
      id: requestId,
      replica,
      sequence,
      promptTokens,
      cachedTokens,
      placedNs: nowNs,
      outputTokens: 0,
      blocks: Math.ceil(promptTokens / this.#blockTokens),
      cachedBlocks: Math.floor(cachedTokens / this.#blockTokens),
      firstTokenNs: undefined,
      lastTokenNs: nowNs,
      lastActivityNs: nowNs,
      pairs,
      prefillMark: this.#prefills.mark(replica, nowNs),
      earlier: undefined,
      later: undefined,
    };
    this.#reservations.set(requestId, reservation);
    this.#activity.append(reservation, nowNs);
    this.underWay.add(reservation);
    const columns = this.columns;
    if (columns.inFlight[replica] === 0) this.drainRates.becameBusy(replica, nowNs);
    columns.inFlight[replica] += 1;
    columns.pendingPrefillTokens[replica] += uncachedTokens;
    columns.pendingPrefillPairs[replica] += pairs;
    columns.activeBlocks[replica] += reservation.blocks;
    columns.newBlocks[replica] += reservation.blocks - reservation.cachedBlocks;
  }

  /** The request reached its worker. */
  sent(nowNs: Nanoseconds, requestId: string): void {
    const reservation = this.#reservations.get(requestId);
    if (reservation === undefined) this.#lateSignals += 1;
    else this.#activity.touch(reservation, nowNs);
  }

  /** Prefill is done; undefined if that was known before, or the request is not in flight. */
  firstToken(nowNs: Nanoseconds, requestId: string): FirstToken | undefined {
    const reservation = this.#reservations.get(requestId);
    if (reservation === undefined) {
      this.#lateSignals += 1;
      return undefined;
    }
    this.#activity.touch(reservation, nowNs);
    return reservation.firstTokenNs === undefined ? this.#startDecoding(nowNs, reservation) : undefined;
  }

  /** Output came; many small steps count the same as one large one. */
  grew(nowNs: Nanoseconds, requestId: string, tokens: number): Growth | undefined {
    requireCount("tokens", tokens);
    const reservation = this.#reservations.get(requestId);
    if (reservation === undefined) {
      this.#lateSignals += 1;
      return undefined;
    }
    this.#activity.touch(reservation, nowNs);
    const { replica } = reservation;
    let firstToken: FirstToken | undefined;
    // What came together with the first token took no time of its own; a moment between two calls is not one step's.
    const isFirst = reservation.outputTokens === 0;
    if (tokens > 0) {
      if (reservation.firstTokenNs === undefined) firstToken = this.#startDecoding(nowNs, reservation);
      reservation.outputTokens += tokens;
      this.columns.contextTokens[replica] += tokens;
      // From the whole context and not from `tokens`, so that rounding does not depend on how output was cut.
      const blocks = Math.ceil((reservation.promptTokens + reservation.outputTokens) / this.#blockTokens);
      this.columns.activeBlocks[replica] += blocks - reservation.blocks;
      this.columns.newBlocks[replica] += blocks - reservation.blocks;
      reservation.blocks = blocks;
    }
    const sinceLastNs = isFirst ? 0 : nowNs - reservation.lastTokenNs;
    const mark = this.#prefills.mark(replica, nowNs);
    const meanwhile = workBetween(reservation.prefillMark, mark);
    if (tokens > 0) {
      reservation.lastTokenNs = nowNs;
      reservation.prefillMark = mark;
    }
    return { replica, tokens, sinceLastNs, meanwhile, firstToken };
  }

  /** The request is over, well or badly; gives back all that it held. */
  ended(nowNs: Nanoseconds, requestId: string): EndedReservation | undefined {
    const reservation = this.#reservations.get(requestId);
    if (reservation === undefined) {
      this.#lateSignals += 1;
      return undefined;
    }
    const { replica, promptTokens, cachedTokens, outputTokens, placedNs, firstTokenNs } = reservation;
    // What ended before its first token was refused, failed or cancelled, and shows nothing of how fast work is done:
    // a worker that refuses everything at once must not look like one that drains quickly.
    if (firstTokenNs !== undefined)
      this.drainRates.requestCompleted(replica, nowNs, reservation.blocks - reservation.cachedBlocks);
    this.#release(nowNs, reservation);
    return { replica, promptTokens, cachedTokens, outputTokens, placedNs, firstTokenNs };
  }

  /** Changes how long a request may be silent. */
  setInactivity(inactivityNs: Nanoseconds): void {
    this.#inactivityNs = inactivityNs;
  }

  /** Releases what has been silent for `inactivityNs`, the longest silent first; a long but lively request stays. */
  expire(nowNs: Nanoseconds): string[] {
    const ids: string[] = [];
    for (;;) {
      const reservation = this.#activity.earliest;
      if (reservation === undefined || nowNs - reservation.lastActivityNs < this.#inactivityNs) return ids;
      ids.push(reservation.id);
      this.#release(nowNs, reservation);
    }
  }

  /** Keeps what the engine says of itself, and takes from it the capacities that nobody configured. */
  report(replica: number, reported: ReportedLoad, nowNs: Nanoseconds): void {
    const member = this.#members[replica];
    if (member === undefined) {
      this.#lateSignals += 1;
      return;
    }
    member.reported = reported;
    member.reportedNs = nowNs;
    if (member.spec.batchSlots === undefined && reported.batchSlots !== undefined) {
      this.columns.batchSlots[replica] = capacityColumn(reported.batchSlots);
    }
    if (member.spec.kvBlocks === undefined && reported.kvBlocks !== undefined) {
      this.columns.kvBlocks[replica] = capacityColumn(reported.kvBlocks);
    }
  }

  /** The modelled and the reported load of one replica, side by side. */
  describe(replica: number): LoadDescription {
    const { reported, reportedNs } = this.#member(replica);
    const columns = this.columns;
    return {
      replica,
      modelled: {
        inFlight: columns.inFlight[replica],
        decoding: columns.decoding[replica],
        pendingPrefillTokens: columns.pendingPrefillTokens[replica],
        contextTokens: columns.contextTokens[replica],
        activeBlocks: columns.activeBlocks[replica],
      },
      batchSlots: columns.batchSlots[replica],
      kvBlocks: columns.kvBlocks[replica],
      stepTokens: columns.stepTokens[replica],
      reported,
      reportedNs,
    };
  }

  #startDecoding(nowNs: Nanoseconds, reservation: Reservation): FirstToken {
    const { replica, promptTokens } = reservation;
    const prefillTokens = promptTokens - reservation.cachedTokens;
    reservation.firstTokenNs = nowNs;
    reservation.lastTokenNs = nowNs;
    const placedMark = reservation.prefillMark;
    reservation.prefillMark = this.#prefills.add(replica, nowNs, prefillTokens, reservation.pairs);
    const meanwhile = workBetween(placedMark, reservation.prefillMark);
    this.columns.pendingPrefillTokens[replica] -= prefillTokens;
    this.columns.pendingPrefillPairs[replica] -= reservation.pairs;
    this.underWay.remove(reservation);
    this.columns.decoding[replica] += 1;
    this.columns.contextTokens[replica] += promptTokens;
    this.drainRates.prefillFinished(replica, nowNs, prefillTokens);
    return { replica, promptTokens, prefillTokens, sincePlacedNs: nowNs - reservation.placedNs, meanwhile };
  }

  #release(nowNs: Nanoseconds, reservation: Reservation): void {
    const { replica } = reservation;
    const columns = this.columns;
    this.#reservations.delete(reservation.id);
    this.#activity.remove(reservation);
    columns.inFlight[replica] -= 1;
    columns.activeBlocks[replica] -= reservation.blocks;
    columns.newBlocks[replica] -= reservation.blocks - reservation.cachedBlocks;
    if (reservation.firstTokenNs === undefined) {
      this.underWay.remove(reservation);
      columns.pendingPrefillTokens[replica] -= reservation.promptTokens - reservation.cachedTokens;
      columns.pendingPrefillPairs[replica] -= reservation.pairs;
    } else {
      columns.decoding[replica] -= 1;
      columns.contextTokens[replica] -= reservation.promptTokens + reservation.outputTokens;
    }
    if (columns.inFlight[replica] === 0) this.drainRates.becameIdle(replica, nowNs);
  }

  #member(replica: number): Member {
    const member = this.#members[replica];
    if (member === undefined) {
      throw new WarmpathError("WP_UNKNOWN_REPLICA", `replica ${replica} is not in the load model`);
    }
    return member;
  }
}

// Fractions would leave rounding dust in the columns, and NaN would spoil them for good.
function requireCount(name: string, value: number): void {
  if (!(Number.isSafeInteger(value) && value >= 0)) {
    throw new WarmpathError("WP_INVALID_INPUT", `${name} must be a whole number of at least 0, not ${value}`);
  }
}

function requirePositive(name: string, value: number): void {
  if (!(Number.isSafeInteger(value) && value > 0)) {
    throw new WarmpathError("WP_INVALID_INPUT", `${name} must be a whole number of at least 1, not ${value}`);
  }
}
