import { z } from "zod";
import type { CellLevel } from "../results/types.ts";
import { experimentProblems } from "./problems.ts";
import { METRICS } from "./metrics.ts";

/** A published table as data. */
export interface PublishedStudy {
  readonly study: string;
  /** Where the numbers stand. */
  readonly source: string;
  /** How the study's numbers are read, where that is not plain. */
  readonly notes: readonly string[];
  /** What was set or chosen with a look at this study; such cells prove nothing. */
  readonly fitted: readonly FittedChoice[];
  /** Without this very trace no error is given. */
  readonly traceSha256?: string | undefined;
  readonly cells: readonly PublishedCell[];
  /** Comparisons between two arms of the study. */
  readonly contrasts: readonly PublishedContrast[];
}

/** Something that was set on some of a study's numbers. */
export interface FittedChoice {
  readonly what: string;
  /** Arms, levels and metrics it was set on; every one of a kind that is left out. */
  readonly arms?: readonly string[] | undefined;
  readonly levels?: readonly number[] | undefined;
  readonly metrics?: readonly string[] | undefined;
}

/** The published numbers of one arm at one level. */
export interface PublishedCell {
  readonly arm: string;
  readonly level: Partial<CellLevel>;
  readonly saturated?: boolean | undefined;
  readonly values: Readonly<Record<string, number>>;
}

/** How one arm stands to another by a metric. */
export interface PublishedContrast {
  readonly metric: string;
  readonly arm: string;
  readonly against: string;
  readonly as: "difference" | "ratio";
}

const metricName = z.enum(METRICS.map(({ name }) => name));
const studySchema: z.ZodType<PublishedStudy> = z.strictObject({
  study: z.string().min(1),
  source: z.string().min(1),
  notes: z.array(z.string()).default([]),
  fitted: z
    .array(
      z.strictObject({
        what: z.string().min(1),
        arms: z.array(z.string()).optional(),
        levels: z.array(z.number()).optional(),
        metrics: z.array(metricName).optional(),
      }),
    )
    .default([]),
  traceSha256: z.string().length(64).optional(),
  cells: z.array(
    z.strictObject({
      arm: z.string().min(1),
      level: z.strictObject({
        concurrency: z.number().optional(),
        rateRps: z.number().optional(),
        speed: z.number().optional(),
        workers: z.number(),
      }),
      saturated: z.boolean().optional(),
      values: z.partialRecord(metricName, z.number()) as unknown as z.ZodType<Record<string, number>>,
    }),
  ),
  contrasts: z
    .array(
      z.strictObject({
        metric: metricName,
        arm: z.string(),
        against: z.string(),
        as: z.enum(["difference", "ratio"]),
      }),
    )
    .default([]),
});

/** Checks the content of a file with a published table. */
export function readPublished(content: unknown): { study: PublishedStudy | undefined; problems: readonly string[] } {
  const parsed = studySchema.safeParse(content);
  if (parsed.success) return { study: parsed.data, problems: [] };
  return { study: undefined, problems: experimentProblems(parsed.error, content) };
}
