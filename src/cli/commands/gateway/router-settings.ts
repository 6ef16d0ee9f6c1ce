import type { Watermarks } from "../../../core/admission/types.ts";
import { DEFAULT_WATERMARKS } from "../../../core/admission/types.ts";
import { NS_PER_SECOND } from "../../../core/clock.ts";
import { WarmpathError } from "../../../core/errors.ts";
import { createPolicy } from "../../../core/policy/registry.ts";
import type { Policy } from "../../../core/policy/types.ts";
import { Router } from "../../../core/router.ts";
import type { RouterRules } from "../../../core/router-options.ts";
import type { RetryBudgetOptions } from "../../../gateway/retry-budget.ts";
import type { GatewaySettings } from "./settings.ts";

/** Candidate rows per record that there is room for on average; a larger fleet keeps fewer full records. */
const ROWS_PER_RECORD = 64;
/** By how much the router waits longer than the gateway, which looks at its deadlines only every now and then. */
const SPARE_SECONDS = 60;
const WATERMARKS = ["batchSlotsFraction", "prefillTokens", "prefillStepFraction", "kvBlocksFraction"];

/** The router that the settings describe. */
export function createRouter(settings: GatewaySettings): Router {
  const { blockTokens, maxWorkers, indexBlocks, records, recordsKept, seed } = settings;
  const candidateRows = recordsKept * Math.min(maxWorkers, ROWS_PER_RECORD);
  return new Router(createPolicyFrom(settings), {
    blockTokens,
    maxReplicas: maxWorkers,
    maxBlocks: indexBlocks,
    seed,
    records: { detail: records, capacity: recordsKept, candidateRows },
    ...rulesFrom(settings),
  });
}

/** Who is let in, how often a request is tried, and how long one counts that nothing is heard of. */
export function rulesFrom(settings: GatewaySettings): RouterRules {
  const { admission: mode, watermark, queueRequests, queueSeconds, maxAttempts } = settings;
  const { firstByteSeconds, gapSeconds, answerSeconds } = settings;
  return {
    admission: {
      mode,
      watermarks: watermarksFrom(watermark, DEFAULT_WATERMARKS[mode]),
      queue: { maxRequests: queueRequests, maxWaitNs: queueSeconds * NS_PER_SECOND },
    },
    maxAttempts,
    // As long as the gateway itself waits for a worker, the worker is at work.
    inactivityNs: (Math.max(firstByteSeconds, gapSeconds, answerSeconds) + SPARE_SECONDS) * NS_PER_SECOND,
  };
}

/** How much may be tried again, over all requests. */
export function retryBudgetFrom(settings: GatewaySettings): RetryBudgetOptions {
  return { share: settings.retryBudgetPercent / 100, perSecond: settings.retryBudgetPerSecond };
}

/** The policy with the knobs that were set. */
export function createPolicyFrom({ policy, set }: Pick<GatewaySettings, "policy" | "set">): Policy {
  const parameters: Record<string, number | string> = {};
  for (const [name, value] of pairs("--set", set)) {
    const written = Number(value);
    parameters[name] = Number.isNaN(written) ? value : written;
  }
  return createPolicy(policy, parameters);
}

function watermarksFrom(written: readonly string[], defaults: Watermarks): Watermarks {
  const watermarks: Record<string, number | undefined> = { ...defaults };
  for (const [name, value] of pairs("--watermark", written)) {
    const amount = value === "off" ? undefined : Number(value);
    if (!WATERMARKS.includes(name)) throw invalid(`--watermark ${name} is none of ${WATERMARKS.join(", ")}`);
    if (amount !== undefined && !(amount > 0)) {
      throw invalid(`--watermark ${name} must be a number more than 0, or off; got ${JSON.stringify(value)}`);
    }
    watermarks[name] = amount;
  }
  return watermarks;
}

function pairs(option: string, written: readonly string[]): [name: string, value: string][] {
  return written.map((entry) => {
    const [, name, value] = /^([^=\s]+)=(.+)$/.exec(entry) ?? [];
    if (name === undefined || value === undefined) {
      throw invalid(`${option} must be NAME=VALUE, got ${JSON.stringify(entry)}`);
    }
    return [name, value];
  });
}

function invalid(message: string): WarmpathError {
  return new WarmpathError("WP_INVALID_INPUT", message);
}
