import { RUN_NUMBERS } from "../../core/request-record.ts";
import type { Sequence } from "./engine-request.ts";
import type { Stretch } from "./stretch.ts";

const NO_TIMES = new Float64Array(0);

/**
 * When steps that produced tokens took place, as runs in the form of a request record. Requests decoded together share
 * the entries: a request's token times are a view into this log.
 */
export class StepLog {
  readonly #isOn: boolean;
  readonly #isMixed: boolean;
  #numbers = new Float64Array(RUN_NUMBERS * 16);
  #entries = 0;
  /** The step of prompts alone that has just ended. */
  #promptStep: Float64Array = NO_TIMES;

  /** `isMixed` is false where prompts are computed in steps of their own. */
  constructor(isOn: boolean, isMixed: boolean) {
    this.#isOn = isOn;
    this.#isMixed = isMixed;
  }

  /** A stretch has come to its end, with decodes or with prompts in it. */
  add(stretch: Stretch, decodes: number, prompts: number): void {
    if (!this.#isOn) return;
    const { clock, run, steps } = stretch;
    if (decodes > 0 || (this.#isMixed && prompts > 0)) {
      this.#append(clock.nowNs, clock.remainderPs, run.aPs, run.bPs, steps);
    } else if (prompts > 0) {
      // Kept apart, because it gives nothing to those who share the log.
      this.#promptStep = Float64Array.of(clock.nowNs, clock.remainderPs, run.aPs, 0, 1);
    }
  }

  /** The run under way goes no further than the steps that are over, since nobody will run it on. */
  stop({ clock, run, done }: Stretch): void {
    if (this.#isOn && done > 0) this.#append(clock.nowNs, clock.remainderPs, run.aPs, run.bPs, done);
  }

  /** A request got a token from the prompt that the last step has computed, and may stay for more. */
  enter(sequence: Sequence): void {
    if (!this.#isOn) return;
    sequence.logFrom = this.#isMixed ? this.#entries - 1 : this.#entries;
    if (!this.#isMixed) sequence.tokenRuns.push(this.#promptStep);
  }

  /** It leaves the batch, for good or for a while. */
  leave(sequence: Sequence): void {
    if (sequence.logFrom < 0) return;
    const from = sequence.logFrom * RUN_NUMBERS;
    const to = this.#entries * RUN_NUMBERS;
    if (to > from) sequence.tokenRuns.push(this.#numbers.subarray(from, to));
    sequence.logFrom = -1;
  }

  /** All token times of a request that has left. */
  timesOf({ tokenRuns }: Sequence): Float64Array {
    return joined(tokenRuns);
  }

  /** Those of one that is still here, with so many steps of the stretch under way. */
  timesSoFar({ tokenRuns, logFrom }: Sequence, { clock, run }: Stretch, steps: number): Float64Array {
    if (logFrom < 0) return joined(tokenRuns);
    const kept = this.#numbers.subarray(logFrom * RUN_NUMBERS, this.#entries * RUN_NUMBERS);
    if (steps === 0) return joined([...tokenRuns, kept]);
    return joined([...tokenRuns, kept, Float64Array.of(clock.nowNs, clock.remainderPs, run.aPs, run.bPs, steps)]);
  }

  #append(startNs: number, remainderPs: number, firstStepPs: number, growthPs: number, steps: number): void {
    let at = this.#entries * RUN_NUMBERS;
    if (at === this.#numbers.length) {
      // Views handed out keep the old memory, whose entries never change.
      const larger = new Float64Array(2 * at);
      larger.set(this.#numbers);
      this.#numbers = larger;
    }
    this.#numbers[at++] = startNs;
    this.#numbers[at++] = remainderPs;
    this.#numbers[at++] = firstStepPs;
    this.#numbers[at++] = growthPs;
    this.#numbers[at] = steps;
    this.#entries += 1;
  }
}

function joined(pieces: readonly Float64Array[]): Float64Array {
  if (pieces.length === 0) return NO_TIMES;
  if (pieces.length === 1) return pieces[0];
  const all = new Float64Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}
