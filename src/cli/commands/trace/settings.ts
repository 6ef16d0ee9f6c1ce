import type { ConversationParameters } from "../../../workload/conversation/parameters.ts";
import { usage, wholeRange } from "./options.ts";

/** A parameter and its value as written on the command line. */
export type Setting = readonly [name: string, written: string];

/** Reads `name=value`. */
export function readSetting(written: string): Setting {
  const [, name, value] = /^([^=\s]+)=(.+)$/.exec(written) ?? [];
  if (name === undefined || value === undefined) throw usage(`--set must be name=value, got "${written}"`);
  return [name, value];
}

/** Parameters with some changed; each is read as what it is: a range, a list or a number. */
export function withSettings(parameters: ConversationParameters, settings: readonly Setting[]): ConversationParameters {
  const changed: Record<string, unknown> = { ...parameters };
  for (const [name, written] of settings) {
    const current = changed[name];
    if (current === undefined) {
      throw usage(`--set ${name}: unknown parameter; there are ${Object.keys(parameters).join(", ")}`);
    }
    changed[name] = readValue(name, written, current);
  }
  return changed as unknown as ConversationParameters;
}

function readValue(name: string, written: string, current: unknown): unknown {
  if (name === "outputTokensByTurn") return written.split(",").map((part) => readNumber(name, part));
  return Array.isArray(current) ? wholeRange(`--set ${name}`)(written) : readNumber(name, written);
}

function readNumber(name: string, written: string): number {
  const value = Number(written);
  if (written.trim() !== "" && Number.isFinite(value)) return value;
  throw usage(`--set ${name} must be a number, got "${written}"`);
}
