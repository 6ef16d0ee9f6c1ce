import { z } from "zod";
import { problemLines } from "../results/problems.ts";

/** Every problem of an experiment as one line that names the field. */
export function experimentProblems(error: z.ZodError, input: unknown): string[] {
  return error.issues.flatMap((issue) => {
    if (issue.code === "unrecognized_keys") {
      return issue.keys.map((key) => `${fieldName([...issue.path, key])} is not a known field`);
    }
    if (issue.code === "too_small" && issue.origin === "array") {
      return [`${fieldName(issue.path)} must be a list with at least one entry`];
    }
    return problemLines(new z.ZodError([issue]), input).map((line) => line.replace(/^the file /, "the experiment "));
  });
}

function fieldName(path: readonly PropertyKey[]): string {
  const name = path.map((part) => (typeof part === "number" ? `[${part}]` : `.${String(part)}`)).join("");
  return name.replace(/^\./, "");
}
