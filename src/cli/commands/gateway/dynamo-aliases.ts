/**
 * The names that people know from NVIDIA Dynamo's frontend, translated. Where Dynamo's default differs (its mode is
 * round-robin), ours stays: an alias says what it says and nothing more.
 */
import { WarmpathError } from "../../../core/errors.ts";
import { POLICIES } from "../../../core/policy/registry.ts";
import type { GivenSettings } from "./settings.ts";

/** Dynamo's router modes and the policies they are here. */
const ROUTER_MODES: Readonly<Record<string, string>> = {
  kv: "kv-cost",
  "round-robin": "round-robin",
  random: "random",
  "power-of-two": "power-of-two",
  "least-loaded": "least-loaded",
};

/** Flags of Dynamo's that set a knob of the policy, wherever it has that knob. */
const KNOB_FLAGS: Readonly<Record<string, string>> = {
  kvOverlapScoreWeight: "overlap_score_weight",
  routerTemperature: "router_temperature",
};

const KNOB_VARIABLES: Readonly<Record<string, string>> = {
  DYN_ROUTER_KV_OVERLAP_SCORE_WEIGHT: "overlap_score_weight",
  DYN_ROUTER_TEMPERATURE: "router_temperature",
};

/** What the aliases come to. */
export interface DynamoSettings {
  readonly fromEnvironment: GivenSettings;
  readonly fromFlags: GivenSettings;
  /** The flags that are not aliases. */
  readonly flags: GivenSettings;
  readonly notes: readonly string[];
  /** Knobs given by alias, for a policy that may or may not have them. */
  knobsFor(policy: string): { readonly set: readonly string[]; readonly notes: readonly string[] };
}

/** Aliases as commander has them, with the help of each. */
export const ALIAS_FLAGS: readonly (readonly [flag: string, about: string])[] = [
  ["--router-mode <mode>", `Dynamo's name for --policy: ${Object.keys(ROUTER_MODES).join(", ")}; DYN_ROUTER_MODE`],
  ["--kv-cache-block-size <tokens>", "Dynamo's name for --block-tokens; DYN_KV_CACHE_BLOCK_SIZE"],
  ["--kv-overlap-score-weight <weight>", "Dynamo's name for --set overlap_score_weight=WEIGHT"],
  ["--router-temperature <temperature>", "Dynamo's name for --set router_temperature=TEMPERATURE"],
  ["--router-reset-states", "Dynamo's; nothing is kept between runs here, so it changes nothing"],
];

/** Takes Dynamo's names out of flags and environment. */
export function dynamoSettings(flags: GivenSettings, environment: NodeJS.ProcessEnv): DynamoSettings {
  const {
    routerMode,
    kvCacheBlockSize,
    kvOverlapScoreWeight: _,
    routerTemperature: __,
    routerResetStates,
    ...own
  } = flags;
  const notes: string[] = [];
  if (routerResetStates === true) notes.push("--router-reset-states: every start is from nothing; ignored");
  const knobs = new Map<string, { value: unknown; source: string }>();
  for (const [variable, knob] of Object.entries(KNOB_VARIABLES)) {
    const value = environment[variable];
    if (value !== undefined && value !== "") knobs.set(knob, { value, source: variable });
  }
  for (const [flag, knob] of Object.entries(KNOB_FLAGS)) {
    const source = `--${flag.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
    if (flags[flag] !== undefined) knobs.set(knob, { value: flags[flag], source });
  }
  return {
    fromEnvironment: {
      ...policyOf(environment["DYN_ROUTER_MODE"], "DYN_ROUTER_MODE"),
      ...given("blockTokens", environment["DYN_KV_CACHE_BLOCK_SIZE"]),
      ...eventPlaneOf(environment["DYN_EVENT_PLANE"], environment),
      ...requestPlaneOf(environment["DYN_REQUEST_PLANE"], environment, notes),
    },
    fromFlags: { ...policyOf(routerMode, "--router-mode"), ...given("blockTokens", kvCacheBlockSize) },
    flags: own,
    notes,
    knobsFor: (policy) => knobsFor(policy, knobs),
  };
}

function knobsFor(
  policy: string,
  knobs: ReadonlyMap<string, { readonly value: unknown; readonly source: string }>,
): { set: string[]; notes: string[] } {
  const known = POLICIES.find(({ name }) => name === policy)?.parameters ?? {};
  const set: string[] = [];
  const notes: string[] = [];
  for (const [knob, { value, source }] of knobs) {
    if (Object.hasOwn(known, knob)) set.push(`${knob}=${String(value)}`);
    // The other arm of a comparison is started with the same flags, so this is no mistake.
    else notes.push(`${source}: ${policy} has no ${knob}; ignored`);
  }
  return { set, notes };
}

function policyOf(mode: unknown, source: string): GivenSettings {
  if (typeof mode !== "string" || mode === "") return {};
  const policy = ROUTER_MODES[mode.toLowerCase().replaceAll("_", "-")];
  if (policy !== undefined) return { policy };
  const known = Object.keys(ROUTER_MODES).join(", ");
  throw invalid(`${source} must be one of ${known}; got ${JSON.stringify(mode)} (--policy has more)`);
}

/** Where Dynamo looks for its NATS server. */
function natsServer(environment: NodeJS.ProcessEnv): string {
  return environment["NATS_SERVER"] || "nats://localhost:4222";
}

function eventPlaneOf(plane: string | undefined, environment: NodeJS.ProcessEnv): GivenSettings {
  if (plane === undefined || plane === "") return {};
  if (plane === "nats") return { eventPlane: natsServer(environment) };
  if (plane === "zmq" || plane === "http") return { eventPlane: plane };
  throw invalid(`DYN_EVENT_PLANE must be zmq, nats or http; got ${JSON.stringify(plane)}`);
}

function requestPlaneOf(plane: string | undefined, environment: NodeJS.ProcessEnv, notes: string[]): GivenSettings {
  if (plane === "nats") return { requestPlane: natsServer(environment) };
  if (plane === "tcp") notes.push("DYN_REQUEST_PLANE=tcp: requests go to engines over HTTP/1.1 here");
  else if (plane !== undefined && plane !== "" && plane !== "http") {
    throw invalid(`DYN_REQUEST_PLANE must be http, nats or tcp; got ${JSON.stringify(plane)}`);
  }
  return {};
}

function given(key: string, value: unknown): GivenSettings {
  return value === undefined || value === "" ? {} : { [key]: value };
}

function invalid(message: string): WarmpathError {
  return new WarmpathError("WP_INVALID_INPUT", message);
}
