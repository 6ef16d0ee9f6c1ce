import { describe, expect, test } from "vitest";
import { fileTree } from "../support/file-tree.ts";
import { runTool } from "../support/run-program.ts";

interface CruiseResult {
  readonly summary: { readonly violations: readonly { from: string; to: string; rule: { name: string } }[] };
}

async function violationsIn(files: Readonly<Record<string, string>>): Promise<string[]> {
  const folder = fileTree(files, [".dependency-cruiser.cjs", "tsconfig.json"]);
  const words = ["--config", ".dependency-cruiser.cjs", "--output-type", "json", "src"];
  const { stdout } = await runTool("depcruise", words, { folder });
  const { summary } = JSON.parse(stdout) as CruiseResult;
  return summary.violations.map(({ rule, from, to }) => `${rule.name}: ${from} → ${to}`).sort();
}

describe("the layer check", () => {
  test("accepts imports that point down", async () => {
    const violations = await violationsIn({
      "src/core/clock.ts": "export const NOW = 1;\n",
      "src/sim/engine.ts": 'import { NOW } from "../core/clock.ts";\nexport const ENGINE = NOW;\n',
      "src/planes/event/types.ts": "export interface EventPlane {}\n",
      "src/planes/event/zmq.ts":
        'import { connect } from "node:net";\nimport type { EventPlane } from "./types.ts";\nexport const ZMQ: EventPlane = { connect };\n',
      "src/gateway/server.ts":
        'import { createServer } from "node:http";\nimport { NOW } from "../core/clock.ts";\nimport type { EventPlane } from "../planes/event/types.ts";\nexport const SERVER: [unknown, number, EventPlane?] = [createServer, NOW];\n',
      "src/cli/main.ts":
        'export { ZMQ } from "../planes/event/zmq.ts";\nexport { SERVER } from "../gateway/server.ts";\n',
    });
    expect(violations).toEqual([]);
  });

  test("reports a gateway that imports the simulator, even if only its types", async () => {
    const violations = await violationsIn({
      "src/sim/engine.ts": "export type Engine = number;\n",
      "src/gateway/server.ts": 'import type { Engine } from "../sim/engine.ts";\nexport const SERVER: Engine = 1;\n',
    });
    expect(violations).toEqual([
      "gateway-never-imports-sim: src/gateway/server.ts → src/sim/engine.ts",
      "layer-gateway: src/gateway/server.ts → src/sim/engine.ts",
    ]);
  });

  test("reports a Node built-in in the core", async () => {
    const violations = await violationsIn({
      "src/core/router.ts": 'export { readFileSync } from "node:fs";\n',
    });
    expect(violations).toEqual(["pure-layers-use-no-node-built-ins: src/core/router.ts → fs"]);
  });

  test("reports whoever but the command line imports an adapter, and an adapter that imports another's port", async () => {
    const violations = await violationsIn({
      "src/planes/event/types.ts": "export type EventPlane = number;\n",
      "src/planes/event/memory.ts":
        'import type { EventPlane } from "./types.ts";\nexport const MEMORY: EventPlane = 1;\n',
      "src/planes/request/http.ts":
        'import type { EventPlane } from "../event/types.ts";\nexport const HTTP: EventPlane = 1;\n',
      "src/worker/publisher.ts": 'export { MEMORY } from "../planes/event/memory.ts";\n',
    });
    expect(violations).toEqual([
      "an-adapter-imports-its-port-core-and-wire: src/planes/request/http.ts → src/planes/event/types.ts",
      "layer-worker: src/worker/publisher.ts → src/planes/event/memory.ts",
      "only-cli-imports-adapters: src/worker/publisher.ts → src/planes/event/memory.ts",
    ]);
  });

  test("reports cycles, and leaves tests alone", async () => {
    const violations = await violationsIn({
      "src/core/a.ts": 'import { B } from "./b.ts";\nexport const A: number = B;\n',
      "src/core/b.ts": 'import { A } from "./a.ts";\nexport const B: number = A;\n',
      "src/core/a.test.ts": 'import "node:fs";\nimport "../sim/fleet.ts";\n',
      "src/sim/fleet.ts": "export const FLEET = 1;\n",
    });
    expect(violations.map((violation) => violation.split(":")[0])).toEqual(["no-cycles"]);
  });
});
