import { type DecodeAffine, PS_PER_NS } from "./step-timer.ts";

/**
 * Why picoseconds: a run of decode steps must last the same whether it is stepped or jumped over. Rounding every step to
 * nanoseconds would break that, and a slope in whole nanoseconds per token of context would be up to a quarter off. So
 * step durations are integers in picoseconds, a worker's clock is whole nanoseconds plus a carried remainder below one,
 * and an event is stamped with the nanoseconds alone. Sums stay exact below 2^53 ps, 2.5 hours for one jump.
 */

/** Picoseconds that the first `steps` of an affine run last together. */
export function runPs(run: DecodeAffine, steps: number): number {
  return steps * run.aPs + run.bPs * ((steps * (steps - 1)) / 2);
}

/** The smallest number of steps that lasts at least `ps`; at least 1, which is how many must run before `ps` is over. */
export function stepsToCover(run: DecodeAffine, ps: number): number {
  if (ps <= run.aPs) return 1;
  const { aPs: a, bPs: b } = run;
  // b/2 k^2 + (a - b/2) k = ps; the float root is within a step or two of the integer one, which exact sums settle.
  const linear = a - b / 2;
  const root = b === 0 ? ps / a : (2 * ps) / (linear + Math.sqrt(linear * linear + 2 * b * ps));
  let steps = Math.max(1, Math.floor(root));
  while (runPs(run, steps) < ps) steps += 1;
  while (steps > 1 && runPs(run, steps - 1) >= ps) steps -= 1;
  return steps;
}

/** A worker's own time: whole nanoseconds and the picoseconds carried over. */
export class StepClock {
  nowNs: number;
  remainderPs = 0;

  constructor(startNs: number) {
    this.nowNs = startNs;
  }

  /** Moves on by a duration; two moves equal one by their sum, exactly. */
  advance(ps: number): void {
    const total = this.remainderPs + ps;
    const whole = Math.floor(total / PS_PER_NS);
    this.nowNs += whole;
    this.remainderPs = total - whole * PS_PER_NS;
  }

  /** When a step that lasts `ps` from now will end, in nanoseconds. */
  endNs(ps: number): number {
    return this.nowNs + Math.floor((this.remainderPs + ps) / PS_PER_NS);
  }

  /** An idle worker wakes at a whole nanosecond; the remainder belonged to the work before. */
  wakeAt(ns: number): void {
    this.nowNs = ns;
    this.remainderPs = 0;
  }
}
