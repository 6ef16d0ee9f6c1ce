import { WarmpathError } from "../../core/errors.ts";
import { createPolicy } from "../../core/policy/registry.ts";
import { checkConversationParameters } from "../../workload/conversation/parameters.ts";
import { experimentProblems } from "./problems.ts";
import { experimentSchema } from "./schema.ts";
import type { Experiment } from "./types.ts";
import { conversationParameters } from "./workload.ts";

/** An experiment, or one line for every problem of its file. */
export type ReadExperiment =
  | { readonly experiment: Experiment; readonly problems: readonly [] }
  | { readonly experiment: undefined; readonly problems: readonly string[] };

/** Checks the content of an experiment file, which some parser has made plain data, and fills in the defaults. */
export function readExperiment(content: unknown): ReadExperiment {
  const parsed = experimentSchema.safeParse(content);
  if (!parsed.success) return { experiment: undefined, problems: experimentProblems(parsed.error, content) };
  const problems = deeperProblems(parsed.data);
  return problems.length > 0 ? { experiment: undefined, problems } : { experiment: parsed.data, problems: [] };
}

/** What only the layers below can judge: the knobs of a policy, ranges of conversations. */
function deeperProblems(experiment: Experiment): string[] {
  const problems: string[] = [];
  const attempt = (within: string, check: () => void): void => {
    try {
      check();
    } catch (error) {
      if (!WarmpathError.isInstance(error)) throw error;
      problems.push(`${within}: ${error.message}`);
    }
  };
  for (const [at, { policy, parameters }] of experiment.arms.entries()) {
    attempt(`arms[${at}]`, () => void createPolicy(policy, parameters));
  }
  const conversations = conversationParameters(experiment.workload);
  if (conversations !== undefined) {
    attempt("workload.conversations", () => checkConversationParameters(conversations));
  }
  return problems;
}
