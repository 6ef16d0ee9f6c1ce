import { parse } from "yaml";
import { z } from "zod";
import { WarmpathError } from "../../../core/errors.ts";
import type { ApiKey } from "../../../gateway/access/api-key.ts";
import { inputProblem } from "../../input-problem.ts";

const KEY_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const allowance = z.int().min(1).optional();

/** Letters, digits, dot, dash and underscore: names are labels of metrics and parts of salts. */
export const keyName: z.ZodType<string> = z
  .string()
  .regex(KEY_NAME, { error: "a name of letters, digits, dots, dashes and underscores" });

const keySchema = z.strictObject({
  name: keyName,
  sha256: z
    .string()
    .regex(/^[0-9a-fA-F]{64}$/, { error: "64 hexadecimal digits, as warmpath key prints them" })
    .transform((digits) => digits.toLowerCase()),
  requestsPerMinute: allowance,
  tokensPerMinute: allowance,
  maxStreams: allowance,
});

const fileSchema = z.array(keySchema).max(10_000);

/** Reads a file of keys, YAML or JSON, or throws with one line about the first entry that cannot be used. */
export function parseKeys(text: string, source: string): readonly ApiKey[] {
  let written: unknown;
  try {
    written = parse(text) ?? [];
  } catch (cause) {
    throw new WarmpathError("WP_INVALID_INPUT", `${source} cannot be read as YAML`, { cause });
  }
  const { data, error } = fileSchema.safeParse(written);
  // Of what was written only the kind is shown: somebody may have put the key itself where its hash belongs.
  if (error !== undefined) throw inputProblem(error, hidden(written), source);
  checkNames(data, source);
  return data;
}

/** Two keys of one name are for replacing one by the other, so what they may must be the same. */
function checkNames(keys: readonly ApiKey[], source: string): void {
  const allowances = new Map<string, string>();
  for (const { name, requestsPerMinute, tokensPerMinute, maxStreams } of keys) {
    const allowed = JSON.stringify([requestsPerMinute, tokensPerMinute, maxStreams]);
    if ((allowances.get(name) ?? allowed) !== allowed) {
      throw new WarmpathError("WP_INVALID_INPUT", `two keys named ${name} have different limits (${source})`);
    }
    allowances.set(name, allowed);
  }
}

function hidden(written: unknown): unknown {
  if (!Array.isArray(written)) return typeof written;
  return written.map((entry: unknown) => {
    if (typeof entry !== "object" || entry === null) return "…";
    return "sha256" in entry ? { ...entry, sha256: "…" } : entry;
  });
}
