import { WarmpathError } from "../../core/errors.ts";
import { createPolicy } from "../../core/policy/registry.ts";
import { checkConversationParameters } from "../../workload/conversation/parameters.ts";
import { experimentProblems } from "./problems.ts";
import { experimentSchema } from "./schema.ts";
import type { Experiment, WorkloadConfig } from "./types.ts";
import { checkPrefixGroupParameters } from "../../workload/prefix-groups.ts";
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
  const problems = experiment.arms.flatMap(({ policy, parameters }, at) =>
    problemOf(`arms[${at}]`, () => void createPolicy(policy, parameters)),
  );
  return [...problems, ...workloadProblems(experiment.workload, "workload")];
}

/** What only the layers below can judge of a workload. */
export function workloadProblems(workload: WorkloadConfig, within: string): string[] {
  const conversations = conversationParameters(workload);
  const { prefixGroups } = workload;
  return [
    ...(conversations === undefined
      ? []
      : problemOf(`${within}.conversations`, () => checkConversationParameters(conversations))),
    ...(prefixGroups === undefined
      ? []
      : problemOf(`${within}.prefixGroups`, () => checkPrefixGroupParameters(prefixGroups))),
  ];
}

function problemOf(within: string, check: () => void): string[] {
  try {
    check();
    return [];
  } catch (error) {
    if (!WarmpathError.isInstance(error)) throw error;
    return [`${within}: ${error.message}`];
  }
}
