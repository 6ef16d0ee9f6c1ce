import type { z } from "zod";

type Issue = z.core.$ZodIssue;

/** Every problem of a value as one line that names the field, what it must be and what it is. */
export function problemLines(error: z.ZodError, input: unknown, within = ""): string[] {
  return error.issues.map((issue) => {
    const field = fieldName(within, issue.path);
    const value = valueAt(input, issue.path);
    if (value === undefined) return `${field} is missing`;
    if (issue.code === "custom" || issue.message.startsWith("must ")) {
      return issue.path.length > 0 && typeof value !== "object"
        ? `${field} ${issue.message}, got ${shown(value)}`
        : `${field} ${issue.message}`;
    }
    return `${field} must be ${requirement(issue)}, got ${shown(value)}`;
  });
}

function requirement(issue: Issue): string {
  switch (issue.code) {
    case "invalid_type":
      return TYPE_NAMES[issue.expected] ?? `a ${issue.expected}`;
    case "invalid_value":
      return issue.values.map((value) => JSON.stringify(value)).join(" or ");
    case "too_small":
      if (issue.origin === "string") return "a text that is not empty";
      return issue.inclusive === false ? `more than ${issue.minimum}` : `${issue.minimum} or more`;
    case "too_big":
      return `${issue.maximum} or less`;
    case "invalid_format":
      return `a ${issue.format}`;
    default:
      return `valid: ${issue.message}`;
  }
}

const TYPE_NAMES: Readonly<Record<string, string>> = {
  int: "a whole number",
  array: "a list",
  object: "an object",
  record: "an object",
  string: "a text",
  boolean: "true or false",
};

function fieldName(within: string, path: readonly PropertyKey[]): string {
  const name = within + path.map((part) => (typeof part === "number" ? `[${part}]` : `.${String(part)}`)).join("");
  return name === "" ? "the file" : name.replace(/^\./, "");
}

function valueAt(input: unknown, path: readonly PropertyKey[]): unknown {
  let value = input;
  for (const part of path) {
    if (typeof value !== "object" || value === null) return undefined;
    value = (value as Record<PropertyKey, unknown>)[part];
  }
  return value;
}

function shown(value: unknown): string {
  const written = JSON.stringify(value) ?? String(value);
  return written.length > 40 ? `${written.slice(0, 39)}…` : written;
}
