import { describe, expect, test } from "vitest";
import { BlockTable, MOST_INDEX_BLOCKS } from "../../../core/kv-index/block-table.ts";
import { fleetSchema } from "../../../lab/experiment/fleet-schema.ts";
import type { FleetConfig } from "../../../lab/experiment/types.ts";
import { checkFleet } from "./simulated-fleet.ts";

function fleetWith(changes: object): FleetConfig {
  return fleetSchema.parse({
    model: "qwen3-8b",
    gpu: "h100",
    workers: 2,
    engine: { profile: "vllm" },
    blockTokens: 1,
    kvPoolTokens: 300_000,
    ...changes,
  });
}

describe("a fleet is refused before it runs", () => {
  test("where the index of its router could not number all blocks", () => {
    expect(() => checkFleet(fleetWith({}), 64, 4000)).not.toThrow();
    expect(() => checkFleet(fleetWith({}), 128, 4000)).toThrow(
      /^fleet: 128 workers with pools of 300000 blocks need an index of 76,800,000, and 67,108,848 are the most: /,
    );
  });

  test("by the bound that the index itself has", () => {
    expect(() => new BlockTable(MOST_INDEX_BLOCKS + 1, new Int32Array(0), false)).toThrow(
      "the index can hold 67108848",
    );
  });
});
