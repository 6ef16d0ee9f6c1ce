import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createPolicy } from "../core/policy/registry.ts";
import { Router } from "../core/router.ts";
import { LocalDecider } from "./local-decider.ts";

describe("the decider of this process", () => {
  let decider: LocalDecider;

  beforeEach(() => {
    const router = new Router(createPolicy("round-robin"), { blockTokens: 16, maxReplicas: 4, maxBlocks: 1024 });
    decider = new LocalDecider({ router });
    for (const name of ["a", "b", "c"]) decider.fleet.appeared({ name, url: `http://${name}:1` });
  });

  afterEach(async () => {
    await decider.close();
  });

  function offer(id: string): void {
    const preparation = { parseMs: 0, tokenizeMs: 0, hashMs: 0 };
    const decided = { place: () => {}, shed: () => {}, over: () => {} };
    decider.offer({ id, promptTokens: 20, sequence: Uint32Array.of(1, 2), blocks: 1, preparation }, decided);
  }

  async function counted(name: string): Promise<number> {
    const text = await decider.metricsText();
    return Number(new RegExp(`^warmpath_${name}\\{policy="round-robin"\\} (\\d+)$`, "m").exec(text)?.[1]);
  }

  test("counts the prompt of a continuation once where it is placed and once where it is observed", async () => {
    offer("x");
    decider.firstToken("x");
    const continuation = { promptTokens: 50, sequence: Uint32Array.of(1, 2, 3, 4, 5, 6), blocks: 3 };
    decider.ended("x", { outcome: "failed", fault: "stream-cut", ttftMs: 1, continuation });
    // The worker that was to go on could not, and a third one does.
    decider.ended("x", { outcome: "failed", fault: "connect" });
    decider.ended("x", { outcome: "completed", cachedTokens: 16 });
    expect(await counted("prompt_tokens_total")).toBe(70);
    expect(await counted("observed_prompt_tokens_total")).toBe(50);
    expect(await counted("observed_cached_tokens_total")).toBe(16);
    expect(await counted("queue_wait_seconds_count")).toBe(1);
    expect(decider.accounting).toMatchObject({ offered: 1, completed: 1, unfinished: 0 });
  });

  test("counts the prompt of a request once that is tried on several workers", async () => {
    offer("x");
    decider.ended("x", { outcome: "failed", fault: "connect" });
    decider.ended("x", { outcome: "completed", cachedTokens: 0 });
    expect(await counted("prompt_tokens_total")).toBe(20);
    expect(await counted("observed_prompt_tokens_total")).toBe(20);
  });
});
