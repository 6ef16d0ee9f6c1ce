import { z } from "zod";
import { WarmpathError } from "../../core/errors.ts";
import { createPolicy } from "../../core/policy/registry.ts";
import { experimentProblems } from "../experiment/problems.ts";
import { workloadProblems } from "../experiment/read.ts";
import { suiteSchema } from "./schema.ts";
import type { Suite, SuiteArm } from "./types.ts";

/** A suite, or one line for every problem of its file. */
export type ReadSuite =
  | { readonly suite: Suite; readonly problems: readonly [] }
  | { readonly suite: undefined; readonly problems: readonly string[] };

/** Whether the content of a file is meant as a suite and not as an experiment. */
export function isSuite(content: unknown): boolean {
  return typeof content === "object" && content !== null && Object.hasOwn(content, "suite");
}

/** Checks the content of a suite file, which some parser has made plain data, and fills in the defaults. */
export function readSuite(content: unknown): ReadSuite {
  const parsed = suiteSchema.safeParse(content);
  if (!parsed.success) return { suite: undefined, problems: experimentProblems(parsed.error, content) };
  const problems = parsed.data.workloads.flatMap(({ workload }, at) =>
    workloadProblems(workload, `workloads[${at}].workload`),
  );
  return problems.length > 0 ? { suite: undefined, problems } : { suite: parsed.data, problems: [] };
}

const tunedSchema = z.strictObject({
  tuned: z.array(
    z.strictObject({
      policy: z.string(),
      parameters: z.record(z.string(), z.union([z.number(), z.string()])),
      /** How it was found, for people. */
      found: z.record(z.string(), z.union([z.number(), z.string()])).optional(),
    }),
  ),
});

/** The file of rivals at their best, as arms; throws with one line for a file that cannot be used. */
export function readTunedRivals(content: unknown, source: string): SuiteArm[] {
  const parsed = tunedSchema.safeParse(content);
  if (!parsed.success) {
    const problem = experimentProblems(parsed.error, content)[0];
    throw new WarmpathError("WP_INVALID_INPUT", `${source}: ${problem}`);
  }
  return parsed.data.tuned.map(({ policy, parameters }) => {
    const { parameters: resolved } = createPolicy(policy, parameters);
    return { name: `${policy} (tuned)`, policy, parameters: resolved };
  });
}
