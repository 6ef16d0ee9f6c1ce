import { isDeepStrictEqual } from "node:util";
import { createPolicyFrom, rulesFrom } from "./router-settings.ts";
import { type GatewaySettings, flagName } from "./settings.ts";
import { workersFrom } from "./worker-option.ts";

/** Settings that may change while the gateway serves. All others are built into something that lives as long as it does. */
const LIVE = [
  "worker",
  "policy",
  "set",
  "admission",
  "queueRequests",
  "queueSeconds",
  "watermark",
  "maxAttempts",
  "retryBudgetPercent",
  "retryBudgetPerSecond",
  "askUsage",
  "maxBodyMegabytes",
  "maxStreams",
  "firstByteSeconds",
  "gapSeconds",
  "answerSeconds",
  "clientStallSeconds",
  "drainSeconds",
  "healthSeconds",
] as const satisfies readonly (keyof GatewaySettings)[];

/** Whether a setting may change while the gateway serves. */
export function isLive(key: string): boolean {
  return (LIVE as readonly string[]).includes(key);
}

/** What differs between two sets of settings, by the names of flags. */
export interface SettingChanges {
  readonly live: readonly string[];
  readonly restart: readonly string[];
}

export function changesOf(before: GatewaySettings, after: GatewaySettings): SettingChanges {
  const values: Readonly<Record<string, unknown>> = { ...after };
  const earlier: Readonly<Record<string, unknown>> = { ...before };
  const keys = [...new Set([...Object.keys(earlier), ...Object.keys(values)])];
  const changed = keys.filter((key) => !isDeepStrictEqual(earlier[key], values[key]));
  return {
    live: changed.filter((key) => isLive(key)).map(flagName),
    restart: changed.filter((key) => !isLive(key)).map(flagName),
  };
}

/** The settings in force once those that may change are as they are written now. Throws if one of these cannot be used. */
export function withLiveSettings(inForce: GatewaySettings, written: GatewaySettings): GatewaySettings {
  createPolicyFrom(written);
  rulesFrom(written);
  workersFrom(written.worker);
  const live = Object.fromEntries(LIVE.map((key) => [key, written[key]]));
  return { ...inForce, ...live };
}
