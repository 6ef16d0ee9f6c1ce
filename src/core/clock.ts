/**
 * Time in the core is a number of integer nanoseconds since some origin that the driver chooses: simulation start in
 * virtual time, process start in wall time. 2^53 ns are 104 days, so a number holds it exactly.
 */
export type Nanoseconds = number;

/** The only way the core may learn what time it is, where it is not simply told. */
export interface Clock {
  nowNs(): Nanoseconds;
}

export const NS_PER_MS = 1_000_000;
export const NS_PER_SECOND = 1_000_000_000;
