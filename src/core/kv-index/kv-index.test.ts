import { afterEach, expect, test, vi } from "vitest";
import { AliasTable } from "./alias-table.ts";
import { Evidence } from "./evidence.ts";
import { KvIndex } from "./kv-index.ts";
import type { KvEventBody } from "./types.ts";

const BLOCK = Uint32Array.of(1, 2);
const stored: KvEventBody = { kind: "stored", parent: null, engine: BLOCK, local: Uint32Array.of(3, 4) };

afterEach(() => vi.restoreAllMocks());

test("clearing what is empty is nothing, however often an engine says it", () => {
  const index = new KvIndex({ maxReplicas: 2, maxBlocks: 64 });
  index.apply(0, "device", stored);
  const [clear, sweep] = [vi.spyOn(Evidence.prototype, "clearLane"), vi.spyOn(AliasTable.prototype, "sweep")];
  for (let i = 0; i < 1000; i++) index.apply(0, "device", { kind: "cleared" });
  index.apply(0, "host", { kind: "cleared" });
  index.clearReplica(0);
  index.clearReplica(1);
  expect([clear.mock.calls.length, sweep.mock.calls.length]).toEqual([1, 1]);
  expect(index.stats()).toMatchObject({ blocks: 0, aliases: 0 });
  index.expect(1, BLOCK, 1, 0);
  index.clearReplica(1);
  expect(index.match(BLOCK, 1).cached[1]).toBe(0);
});
