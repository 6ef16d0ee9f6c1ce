import { readFile } from "node:fs/promises";
import { parse } from "yaml";
import { WarmpathError } from "../../../core/errors.ts";
import { dynamoSettings } from "./dynamo-aliases.ts";
import { type GivenSettings, type WrittenSettings, readSettings, settingKeys } from "./settings.ts";

/** Where settings may be written. */
export interface SettingSources {
  /** Flags by key, without those that were not given. */
  readonly flags: GivenSettings;
  readonly environment: NodeJS.ProcessEnv;
  /** Path of a YAML or JSON file. */
  readonly file: string | undefined;
}

/** Settings, and what the user should know about how they came to be. */
export interface ResolvedSettings {
  readonly settings: WrittenSettings;
  readonly notes: readonly string[];
}

/** Puts settings together: flags over the environment over the file over defaults, with Dynamo's names understood. */
export async function resolveSettings({ flags, environment, file }: SettingSources): Promise<ResolvedSettings> {
  const written = file === undefined ? {} : await readSettingsFile(file);
  const aliases = dynamoSettings(flags, environment);
  const { flags: ownFlags } = aliases;
  const given = {
    ...written,
    ...aliases.fromEnvironment,
    ...ownEnvironment(environment),
    ...aliases.fromFlags,
    ...ownFlags,
  };
  const settings = readSettings(given);
  const knobs = aliases.knobsFor(settings.policy);
  return {
    settings: { ...settings, set: [...knobs.set, ...settings.set] },
    notes: [...aliases.notes, ...knobs.notes],
  };
}

/** `WARMPATH_BLOCK_TOKENS` and so on. */
function environmentName(key: string): string {
  return `WARMPATH_${key.replaceAll(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;
}

function ownEnvironment(environment: NodeJS.ProcessEnv): GivenSettings {
  const given: Record<string, unknown> = {};
  for (const { key } of settingKeys()) {
    const value = environment[environmentName(key)];
    if (value !== undefined && value !== "") given[key] = value;
  }
  return given;
}

async function readSettingsFile(path: string): Promise<GivenSettings> {
  let content: unknown;
  try {
    content = parse(await readFile(path, "utf8"));
  } catch (cause) {
    const reason = (cause as NodeJS.ErrnoException).code === "ENOENT" ? "does not exist" : "cannot be read as YAML";
    throw new WarmpathError("WP_INVALID_INPUT", `--config ${path} ${reason}`, { cause });
  }
  if (typeof content === "object" && content !== null && !Array.isArray(content)) return content as GivenSettings;
  throw new WarmpathError("WP_INVALID_INPUT", `--config ${path} must hold settings by name`);
}
