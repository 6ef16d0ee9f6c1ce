import type { z } from "zod";
import { WarmpathError } from "../core/errors.ts";

type Issue = z.core.$ZodIssue;

/**
 * The first problem of an input as one line that names the field: `candidates[1].cachedBlocks must be 0 or more, got -5
 * (cases.json)`.
 */
export function inputProblem(error: z.ZodError, input: unknown, source: string): WarmpathError {
  const issue = error.issues[0];
  return new WarmpathError("WP_INVALID_INPUT", `${describeIssue(issue, input)} (${source})`);
}

function describeIssue(issue: Issue, input: unknown): string {
  const field = fieldName(issue.path);
  const value = valueAt(input, issue.path);
  if (issue.code === "custom") return `${field} ${issue.message}`;
  if (issue.code === "unrecognized_keys") return `${fieldName([...issue.path, issue.keys[0]])} is not a known field`;
  if (value === undefined) return `${field} is missing`;
  return `${field} must be ${requirement(issue)}, got ${display(value)}`;
}

function requirement(issue: Issue): string {
  switch (issue.code) {
    case "invalid_type":
      return TYPE_NAMES[issue.expected] ?? `a ${issue.expected}`;
    case "too_small":
      if (issue.origin === "array") return "a list with at least one entry";
      if (issue.origin === "string") return "a text that is not empty";
      return issue.inclusive === false ? `more than ${issue.minimum}` : `${issue.minimum} or more`;
    case "too_big":
      return `${issue.maximum} or less`;
    case "invalid_union":
      return "a number or a text";
    default:
      return `valid: ${issue.message}`;
  }
}

const TYPE_NAMES: Readonly<Record<string, string>> = {
  int: "a whole number",
  number: "a number",
  string: "a text",
  array: "a list",
  object: "an object",
  record: "an object",
  boolean: "true or false",
};

function fieldName(path: readonly PropertyKey[]): string {
  if (path.length === 0) return "the input";
  return path
    .map((part) => (typeof part === "number" ? `[${part}]` : `.${String(part)}`))
    .join("")
    .replace(/^\./, "");
}

function valueAt(input: unknown, path: readonly PropertyKey[]): unknown {
  let value = input;
  for (const part of path) {
    if (typeof value !== "object" || value === null) return undefined;
    value = (value as Record<PropertyKey, unknown>)[part];
  }
  return value;
}

/** The offending value, short enough for one line. */
function display(value: unknown): string {
  const written = JSON.stringify(value) ?? String(value);
  return written.length > 40 ? `${written.slice(0, 39)}…` : written;
}
