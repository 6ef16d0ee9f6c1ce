import { hashText } from "../core/hash.ts";
import { type FaultSwitches, faultsSchema } from "./faults.ts";
import { readJson, refuse, respondJson, type Routes } from "./http-reply.ts";
import type { TwinEngine } from "./twin-engine.ts";

const MAX_BODY_BYTES = 64 * 1024;

/** Looks inside, and switches for faults: for tests and for people, not for the network. */
export function debugRoutes(engine: TwinEngine, faults: FaultSwitches, blockTokens: number): Routes {
  return {
    "GET /debug/cache": (_, response, query) => {
      const { incarnation, lastEventId, runs } = engine.snapshot();
      const withHashes = query.get("hashes") !== "false";
      const blocks = runs.reduce((sum, { sequence }) => sum + sequence.length / 2, 0);
      const listed = runs.map(({ tier, sequence }) => ({
        tier,
        blocks: sequence.length / 2,
        ...(withHashes && { hashes: hashTexts(sequence) }),
      }));
      const body = { incarnation, lastEventId, blockTokens, blocks, ...engine.load, runs: listed };
      respondJson(response, 200, JSON.stringify(body));
    },
    // Under vLLM's name, so that whoever resets a fleet need not know what it consists of.
    "POST /reset_prefix_cache": (_, response) => {
      engine.forgetCache();
      respondJson(response, 200, "{}");
    },
    "GET /debug/engine": (_, response) =>
      respondJson(response, 200, JSON.stringify({ ...engine.load, ...engine.stats })),
    "GET /debug/faults": (_, response) => respondJson(response, 200, JSON.stringify(faults.current)),
    "POST /debug/faults": async (request, response) => {
      const body = await readJson(request, response, MAX_BODY_BYTES);
      if (body === undefined) return;
      const { data, error } = faultsSchema.safeParse(body.value);
      if (error !== undefined) {
        const { path, message } = error.issues[0];
        refuse(response, "invalid_request", `${path.join(".") || "the body"}: ${message}`, { param: path.join(".") });
        return;
      }
      faults.turn(data);
      // Not after a crash, which leaves nothing to answer with.
      if (!response.destroyed) respondJson(response, 200, JSON.stringify(faults.current));
    },
  };
}

function hashTexts(sequence: Uint32Array): string[] {
  return Array.from({ length: sequence.length / 2 }, (_, i) => hashText(sequence[2 * i], sequence[2 * i + 1]));
}
