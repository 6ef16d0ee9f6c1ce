import { type SettingChanges, changesOf, withLiveSettings } from "./live-settings.ts";
import { type SettingSources, resolveSettings } from "./setting-sources.ts";
import type { GatewaySettings } from "./settings.ts";
import { settled } from "./settled-settings.ts";

/** Settings as they are written, and what the user should know about how they came to be. */
export interface ReadSettings {
  readonly settings: GatewaySettings;
  readonly notes: readonly string[];
}

/** Settings that were read while others are in force. */
export interface ReadAgain extends ReadSettings {
  readonly changes: SettingChanges;
}

/** Reads all settings from where they are written, and settles what was left open by asking the workers. */
export async function readWritten(sources: SettingSources): Promise<ReadSettings> {
  const written = await resolveSettings(sources);
  const { settings, notes } = await settled(written.settings);
  return { settings, notes: [...written.notes, ...notes] };
}

/**
 * The settings in force with all that may change as it is written now. What workers said of their tokens and blocks holds: one
 * that is down just now must not change it.
 */
export async function readAgain(sources: SettingSources, inForce: GatewaySettings): Promise<ReadAgain> {
  const { settings: written, notes } = await resolveSettings(sources);
  const now = {
    ...written,
    blockTokens: written.blockTokens ?? inForce.blockTokens,
    tokenizer: written.tokenizer === "auto" ? inForce.tokenizer : written.tokenizer,
  };
  return { settings: withLiveSettings(inForce, now), changes: changesOf(inForce, now), notes };
}
