import { afterEach, describe, expect, test } from "vitest";
import { createPolicy } from "../core/policy/registry.ts";
import { Router } from "../core/router.ts";
import { InlineTokens } from "../planes/tokens/inline.ts";
import { WordTokenizer } from "../tokenizer/word-tokenizer.ts";
import { LocalDecider } from "./local-decider.ts";
import { scriptedWorker } from "./scripted-worker.test-support.ts";
import { Gateway } from "./server.ts";

const open: { close(): unknown }[] = [];

afterEach(async () => {
  for (const each of open.splice(0).toReversed()) await each.close();
});

describe("a worker with data-parallel ranks", () => {
  test.each([
    { dpRanks: 3, told: ["0", "1", "2"] },
    { dpRanks: 1, told: [undefined] },
    { dpRanks: undefined, told: [undefined] },
  ])("of which there are $dpRanks is told which of them a request is for", async ({ dpRanks, told }) => {
    const ranks: unknown[] = [];
    const worker = await scriptedWorker((_body, response, { headers }) => {
      ranks.push(headers["x-data-parallel-rank"]);
      response.end("{}");
    });
    const blockTokens = 16;
    const router = new Router(createPolicy("round-robin"), { blockTokens, maxReplicas: 4, maxBlocks: 1024 });
    const decider = new LocalDecider({ router });
    decider.fleet.appeared({ name: "a", url: worker.url, ...(dpRanks !== undefined && { dpRanks }) });
    const gateway = new Gateway({ decider, blockTokens, tokens: new InlineTokens(new WordTokenizer(), "exact") });
    open.push(worker, decider, { close: () => gateway.close(0) });
    const url = await gateway.listen();
    for (let i = 0; i < 3; i++) {
      await fetch(`${url}/v1/completions`, { method: "POST", body: '{"model":"m","prompt":"x"}' });
    }
    expect(ranks).toHaveLength(3);
    expect(new Set(ranks)).toEqual(new Set(told));
  });
});
