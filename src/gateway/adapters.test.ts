import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { sequenceHashes } from "../core/hash.ts";
import { createPolicy } from "../core/policy/registry.ts";
import { Router } from "../core/router.ts";
import { InlineTokens } from "../planes/tokens/inline.ts";
import { WordTokenizer } from "../tokenizer/word-tokenizer.ts";
import { HealthMonitor } from "./health/health-monitor.ts";
import { httpProbe } from "./health/worker-probe.ts";
import { LocalDecider } from "./local-decider.ts";
import { Gateway } from "./server.ts";

const BLOCK_TOKENS = 16;
const PROMPT = Array.from({ length: 64 }, (_, i) => `word${i}`).join(" ");
/** As vLLM lists them: an adapter has the model that it adapts as its parent, and a model has none. */
const SERVED = {
  object: "list",
  data: [
    { id: "base", object: "model", root: "base", parent: null },
    { id: "sql", object: "model", root: "/adapters/sql", parent: "base" },
    { id: "poems", object: "model", root: "/adapters/poems", parent: "base" },
  ],
};
const ANSWER = { choices: [{ index: 0, text: "hi" }], usage: { prompt_tokens: 64, completion_tokens: 1 } };

const open: { close(): unknown }[] = [];

afterEach(async () => {
  for (const each of open.splice(0).toReversed()) await each.close();
});

/** A gateway in front of one engine with two adapters, which says nothing of its cache. */
async function started(): Promise<{
  router: Router;
  decider: LocalDecider;
  predictedFor: (model: string) => Promise<number>;
}> {
  const engine = createServer((request, response) => {
    request.resume();
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(request.url === "/v1/models" ? SERVED : ANSWER));
  });
  engine.listen(0, "127.0.0.1");
  await once(engine, "listening");
  const router = new Router(createPolicy("kv-cost"), { blockTokens: BLOCK_TOKENS, maxReplicas: 2, maxBlocks: 1024 });
  const decider = new LocalDecider({ router });
  decider.fleet.appeared({ name: "a", url: `http://127.0.0.1:${(engine.address() as AddressInfo).port}` });
  const { directory, fleet } = decider;
  const monitor = new HealthMonitor({ directory, fleet, probe: httpProbe(5000), intervalMs: 3_600_000 });
  await monitor.start();
  const gateway = new Gateway({
    decider,
    blockTokens: BLOCK_TOKENS,
    tokens: new InlineTokens(new WordTokenizer(), "exact"),
  });
  open.push({ close: () => engine.close() }, monitor, decider, { close: () => gateway.close(0) });
  const url = await gateway.listen();
  return {
    router,
    decider,
    predictedFor: async (model) => {
      const body = JSON.stringify({ model, prompt: PROMPT, max_tokens: 1 });
      const reply = await fetch(`${url}/v1/completions`, { method: "POST", body });
      expect(reply.status).toBe(200);
      await reply.text();
      return router.log.latest(1)[0].predictedCachedTokens ?? -1;
    },
  };
}

describe("adapters", () => {
  test("are known by the model that engines list as their parent", async () => {
    const { decider } = await started();
    expect(decider.models()).toEqual(["base", "poems", "sql"]);
    expect(decider.adapters()).toEqual(["poems", "sql"]);
  });

  test("find what was computed for them, and nothing of what was computed for others", async () => {
    const { predictedFor } = await started();
    expect(await predictedFor("base")).toBe(0);
    expect(await predictedFor("base")).toBeGreaterThan(0);
    expect(await predictedFor("sql")).toBe(0);
    expect(await predictedFor("sql")).toBeGreaterThan(0);
    expect(await predictedFor("poems")).toBe(0);
  });

  test("find what an engine's events say of them by name", async () => {
    const { router, predictedFor } = await started();
    const engine = sequenceHashes(new WordTokenizer().encode({ kind: "text", text: PROMPT }), BLOCK_TOKENS, {
      loraName: "poems",
    });
    router.index.apply(0, "device", { kind: "stored", parent: null, engine, local: null });
    expect(await predictedFor("sql")).toBe(0);
    expect(await predictedFor("poems")).toBeGreaterThan(0);
  });
});
