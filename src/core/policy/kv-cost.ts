/**
 * KV cost: prefill work plus decode load, both in KV blocks, lowest wins. The rule of NVIDIA Dynamo, in two forms.
 *
 * `mission`: cost = overlap_score_weight × (prompt blocks − cached blocks) + the replica's active blocks, as the mission's
 * second document writes it (weight 1 and temperature 0 are its defaults). Ties rotate.
 *
 * `dynamo`: the cost function of ai-dynamo/dynamo after v1.4.1 (August 2026) with its defaults:
 *
 *     prefill_load_scale × max(0, (pending prefill + prompt tokens) / block size − credits)
 *       + active blocks + prompt blocks that active requests do not hold already
 *       + decode_active_request_weight × requests in flight
 *
 * Credits are overlap_score_credit (1) × cached blocks, divided by 1 + decay × the replica's excess pending prefill in
 * units of this request (decay 0), plus 0.75 × host and 0.25 × disk blocks. Ties are broken at random. The shared-cache
 * credit is left out because Dynamo's default, too, has no shared cache. `overlap_score_weight` is the name that Dynamo
 * gave up for prefill_load_scale; here it multiplies the prefill cost together with that scale, so 1 changes nothing and
 * 0 drops the prefill term, as the old name did. Two figures are ours: active blocks count shared blocks for each
 * holder and grow with the output, where Dynamo counts distinct prompt blocks unless told otherwise.
 *
 * Weakness: a block to compute and a block to attend over get the same price although one costs far more time, and so the
 * best scale depends on model and load (Dynamo's own sweep ended at 32). Batch slots and queues do not appear at
 * all; every KV row of that sweep has a worse TPOT than round-robin.
 */
import { CostPolicy, type CostRule } from "./cost-policy.ts";
import { DynamoForm, MissionForm } from "./kv-cost-forms.ts";
import { invalid, numberParameter, resolveParameters } from "./parameters.ts";
import { TemperatureRule } from "./temperature.ts";
import type { ParameterSpec, Policy, PolicyDefinition, PolicyParameters } from "./types.ts";

/** The knobs that weigh load, which `kv-cost` and `load-only` share. */
export const LOAD_PARAMETERS: Readonly<Record<string, ParameterSpec>> = {
  form: {
    kind: "choice",
    default: "mission",
    choices: ["mission", "dynamo"],
    about: "The mission's formula, or today's Dynamo with pending prefill, tiers and the request's own decode blocks.",
  },
  overlap_score_weight: number(1, 1_000_000, "Weight of prefill blocks against decode blocks."),
  router_temperature: number(0, 1000, "Softmax temperature relative to the range of costs; 0 takes the lowest."),
  prefill_load_scale: number(1, 1_000_000, "Scale of the prefill cost after credits (dynamo form)."),
  decode_active_request_weight: number(0, 1_000_000, "Blocks that each request in flight counts for (dynamo form)."),
};

const CACHE_PARAMETERS: Readonly<Record<string, ParameterSpec>> = {
  overlap_score_credit: number(1, 1000, "What a block cached on the device is worth (dynamo form)."),
  overlap_score_credit_decay: number(0, 1000, "How fast credit falls with excess pending prefill (dynamo form)."),
  host_cache_hit_weight: number(0.75, 1, "What a block in host memory is worth (dynamo form)."),
  disk_cache_hit_weight: number(0.25, 1, "What a block on disk is worth (dynamo form)."),
};

const MISSION_PARAMETERS: ReadonlySet<string> = new Set(["form", "overlap_score_weight", "router_temperature"]);

/** Makes the rule of either form; without the cache neither credits nor blocks shared with active requests count. */
export function kvCostRule(policy: PolicyDefinition, parameters: PolicyParameters, seesCache: boolean): CostRule {
  const knob = (name: string): number => (name in parameters ? numberParameter(parameters, name) : 0);
  const weights = {
    overlapScoreWeight: knob("overlap_score_weight"),
    overlapScoreCredit: seesCache ? 1 : 0,
  };
  const temperature = knob("router_temperature");
  let rule: CostRule;
  if (parameters["form"] === "mission") {
    refuseUnusedKnobs(policy, parameters);
    rule = new MissionForm(weights);
  } else {
    rule = new DynamoForm({
      ...weights,
      overlapScoreCredit: knob("overlap_score_credit"),
      overlapScoreCreditDecay: knob("overlap_score_credit_decay"),
      hostCacheHitWeight: knob("host_cache_hit_weight"),
      diskCacheHitWeight: knob("disk_cache_hit_weight"),
      prefillLoadScale: knob("prefill_load_scale"),
      decodeActiveRequestWeight: knob("decode_active_request_weight"),
      assumeReuse: seesCache,
    });
  }
  return temperature > 0 ? new TemperatureRule(rule, temperature) : rule;
}

/** The mission's formula plus Dynamo's. */
export const kvCost: PolicyDefinition = {
  name: "kv-cost",
  about: "overlap_score_weight × prefill blocks + decode blocks: the mission's formula, or today's Dynamo.",
  parameters: { ...LOAD_PARAMETERS, ...CACHE_PARAMETERS },
  create(parameters: PolicyParameters): Policy {
    const resolved = resolveParameters(kvCost.name, kvCost.parameters, parameters);
    return new CostPolicy(kvCost.name, resolved, kvCostRule(kvCost, resolved, true));
  },
};

/** A knob that has no effect would make an experiment repeat its control; the default is let through. */
function refuseUnusedKnobs(policy: PolicyDefinition, parameters: PolicyParameters): void {
  for (const [name, spec] of Object.entries(policy.parameters)) {
    if (MISSION_PARAMETERS.has(name) || parameters[name] === spec.default) continue;
    throw invalid(
      policy.name,
      name,
      `has no effect in the mission form; set form to dynamo or leave it at ${spec.default}`,
    );
  }
}

function number(value: number, maximum: number, about: string): ParameterSpec {
  return { kind: "number", default: value, minimum: 0, maximum, about };
}
