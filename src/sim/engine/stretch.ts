import type { Nanoseconds } from "../../core/clock.ts";
import { runPs, StepClock, stepsToCover } from "../timing/step-run.ts";
import { type DecodeAffine, PS_PER_NS } from "../timing/step-timer.ts";

/** What an engine does between two looks at its queue: one step, or a run of decode steps with durations in a progression. */
export class Stretch {
  readonly clock: StepClock = new StepClock(0);
  readonly run: DecodeAffine = { aPs: 0, bPs: 0, validSteps: 0 };
  isUnderWay = false;
  /** Whether it consists of decode steps only. */
  isRun = false;
  /** Steps planned, and how many of them have taken effect. */
  steps = 0;
  done = 0;

  /** Makes it a single step of this duration. */
  planStep(ps: number): void {
    this.steps = 1;
    this.run.aPs = ps;
    this.run.bPs = 0;
  }

  /** When it ends. */
  get endNs(): Nanoseconds {
    return this.timeAfter(this.steps);
  }

  /** When `steps` of its steps are over. */
  timeAfter(steps: number): Nanoseconds {
    return this.clock.endNs(runPs(this.run, steps));
  }

  /** Steps that are over at a time, not counting the last one. */
  stepsOverBy(nowNs: Nanoseconds): number {
    return Math.min(stepsToCover(this.run, this.#aheadPs(nowNs + 1)), this.steps) - 1;
  }

  /** Lets it end with the first step that is not over before `nowNs`. */
  cut(nowNs: Nanoseconds): void {
    if (!this.isUnderWay || !this.isRun || this.steps === 1) return;
    const steps = Math.max(this.done, stepsToCover(this.run, this.#aheadPs(nowNs)));
    if (steps < this.steps) this.steps = steps;
  }

  /** Moves the clock to its end. */
  end(): void {
    this.clock.advance(runPs(this.run, this.steps));
    this.isUnderWay = false;
  }

  #aheadPs(nowNs: Nanoseconds): number {
    return (nowNs - this.clock.nowNs) * PS_PER_NS - this.clock.remainderPs;
  }
}
