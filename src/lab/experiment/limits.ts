import { z } from "zod";

/** A window shorter than this has no length once its ends are written, and one longer than a day fills the memory. */
export const LEAST_WINDOW_SECONDS = 0.001;
export const MOST_SECONDS = 86_400;
/** All cells are laid out before the first is run. */
export const MOST_RUNS = 10_000;
/** Beyond these a mistake is more likely than a plan, and no machine has the memory or the time. */
export const MOST_WORKERS = 4096;
export const MOST_SESSIONS = 1_000_000;
export const MOST_RATE_RPS = 1_000_000;
export const MOST_TOKENS = 100_000_000;
export const MOST_SNAPSHOTS = 1000;
const MOST_SPEED = 1_000_000;
const LEAST_SPEED = 0.000_001;
const MOST_SHAPE = 1000;
/** Narrower than this a distribution is a number, and its formula divides by nothing. */
const LEAST_SPREAD = 0.001;

/** A length in tokens, or how many of something share them. */
export const tokenCount: z.ZodInt = z.int().min(0).max(MOST_TOKENS);

/** Spread of a distribution around its mean. */
export const spread: z.ZodType<number> = z
  .number()
  .min(0)
  .max(10)
  .refine((value) => value === 0 || value >= LEAST_SPREAD, { error: `must be 0, or ${LEAST_SPREAD} or more` });

/** Factor on the times of a trace. */
export const traceSpeed: z.ZodNumber = z.number().min(LEAST_SPEED).max(MOST_SPEED);

/** Shape of a gamma distribution. */
export const gammaShape: z.ZodNumber = z.number().min(LEAST_SPREAD).max(MOST_SHAPE);

/** A list whose entries differ: each is a level, and two of one name would be taken for one. */
export function distinct<Entry extends number | string>(entry: z.ZodType<Entry>): z.ZodType<Entry[]> {
  return z
    .array(entry)
    .min(1)
    .check(({ value, issues }) => {
      const again = value.findIndex((one, at) => value.indexOf(one) !== at);
      if (again < 0) return;
      issues.push({ code: "custom", message: `must not have ${value[again]} twice`, path: [], input: value });
    });
}
