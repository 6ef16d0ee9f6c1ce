import type { Json } from "../results/types.ts";

/** What an arm was run with, by name; two arms differ in the settings whose texts differ. */
export type Settings = ReadonlyMap<string, string>;

/** The setting of an arm that has workers of another kind than the experiment's. */
export const ARM_FLEET = "the arm's fleet";

type JsonObject = { readonly [key: string]: Json };

/** Keys of a configuration that do not change what an arm does; seeds only draw other requests of the same kind. */
const IRRELEVANT: ReadonlySet<string> = new Set([
  "seed",
  "seeds",
  "name",
  "about",
  "arms",
  "runs",
  "snapshots",
  "slo",
  "kvPools",
  "tokensPerSequence",
]);

/** The settings of an arm, from the configuration that results.json keeps. */
export function settingsOfArm(config: JsonObject, arm: string): Settings {
  const settings = new Map<string, string>();
  const own = armOf(config, arm);
  settings.set("policy", text({ policy: own?.["policy"] ?? null, parameters: own?.["parameters"] ?? {} }));
  settings.set("admission", text(own?.["admission"] ?? null));
  if (own?.["fleet"] !== undefined) settings.set(ARM_FLEET, text(own["fleet"]));
  if (own?.["jitter"] !== undefined) settings.set("jitter", text(own["jitter"]));
  for (const [key, value] of Object.entries(config)) {
    if (!IRRELEVANT.has(key)) settings.set(key, text(withoutLevels(key, value)));
  }
  return settings;
}

/** The policy of an arm in one word and its parameters, for a table. */
export function describeArm(config: JsonObject | undefined, arm: string): string | undefined {
  const own = config === undefined ? undefined : armOf(config, arm);
  const policy = own?.["policy"];
  if (own === undefined || typeof policy !== "string") return undefined;
  const parameters = Object.entries(asObject(own["parameters"]) ?? {}).map(([name, value]) => `${name} ${text(value)}`);
  const mode = asObject(own["admission"])?.["mode"];
  return [policy, ...parameters, ...(typeof mode === "string" ? [`admission ${mode}`] : [])].join(", ");
}

/** Names of the settings in which two arms differ. */
export function differingSettings(a: Settings, b: Settings): string[] {
  const names = new Set([...a.keys(), ...b.keys()]);
  return [...names].filter((name) => a.get(name) !== b.get(name));
}

/** A setting's values in two arms, short enough for a line. */
export function describeDifference(name: string, a: Settings, b: Settings): string {
  const shown = (settings: Settings): string => {
    const value = settings.get(name) ?? "not set";
    return value.length > 120 ? `${value.slice(0, 119)}…` : value;
  };
  return `${name}: ${shown(a)} → ${shown(b)}`;
}

function armOf(config: JsonObject, name: string): JsonObject | undefined {
  const arms = config["arms"];
  if (!Array.isArray(arms)) return undefined;
  return arms.map((arm: Json) => asObject(arm)).find((arm) => arm?.["name"] === name);
}

/** Levels, to which numbers of workers belong, are compared one by one, so their lists are no settings. */
function withoutLevels(key: string, value: Json): Json {
  const object = asObject(value);
  if (object === undefined) return value;
  if (key === "fleet") {
    const { workers: _, ...fleet } = object;
    return fleet;
  }
  if (key !== "load") return value;
  const { concurrency, concurrencyPerWorker, rateRps, speed, ...rest } = object;
  const isClosed = concurrency !== undefined || concurrencyPerWorker !== undefined;
  const kind = isClosed ? "concurrency" : rateRps !== undefined ? "rateRps" : speed !== undefined ? "speed" : "unknown";
  return { kind, ...rest };
}

function asObject(value: Json | undefined): JsonObject | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined;
}

function text(value: Json): string {
  return JSON.stringify(value, (_, inner: Json) => {
    const object = asObject(inner);
    return object === undefined
      ? inner
      : Object.fromEntries(Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}
