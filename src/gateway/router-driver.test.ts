import { describe, expect, test } from "vitest";
import { sequenceHashes } from "../core/hash.ts";
import { createPolicy } from "../core/policy/registry.ts";
import type { RoutedRequest } from "../core/routed-request.ts";
import { Router } from "../core/router.ts";
import { type DecisionTimes, type DrivenRequest, type RequestObserver, RouterDriver } from "./router-driver.ts";

const SEQUENCE = sequenceHashes(
  Uint32Array.from({ length: 64 }, (_, i) => i),
  16,
);

class NotedRequest implements DrivenRequest {
  readonly heard: string[] = [];

  place({ attempt, predictedCachedTokens }: Parameters<DrivenRequest["place"]>[0]): void {
    this.heard.push(`attempt ${attempt}, ${predictedCachedTokens} tokens cached`);
  }

  shed({ code }: Parameters<DrivenRequest["shed"]>[0]): void {
    this.heard.push(code);
  }
}

function driven(...workers: string[]): { made: RouterDriver; asked: unknown[]; times: DecisionTimes[] } {
  const router = new Router(createPolicy("kv-cost"), { blockTokens: 16, maxReplicas: 4, maxBlocks: 1024 });
  for (const worker of workers) router.addReplica({ worker });
  let nowNs = 0;
  const asked: unknown[] = [];
  const clock = { nowNs: () => ++nowNs };
  const times: DecisionTimes[] = [];
  const made = new RouterDriver({
    router,
    clock,
    requestEvents: (effect) => asked.push(effect),
    decided: (taken) => times.push(taken),
  });
  return { made, asked, times };
}

const request = (id: string): RoutedRequest => ({ id, promptTokens: 70, sequence: SEQUENCE, blocks: 4 });

describe("the driver of a router", () => {
  test("passes on what the router asks of event sources", () => {
    const { made, asked } = driven();
    const resync = { kind: "resync", replica: 3 } as const;
    made.carryOut([resync]);
    expect(asked).toEqual([resync]);
  });

  test("forgets a request when it has ended, however it ended", () => {
    const { made } = driven();
    const nobody = new NotedRequest();
    made.offer(request("x"), nobody);
    expect(nobody.heard).toEqual(["no-eligible-worker"]);
    expect(made.open).toBe(0);
    made.router.addReplica({ worker: "a" });
    for (const outcome of ["completed", "failed", "cancelled"] as const) {
      made.offer(request(outcome), new NotedRequest());
      expect(made.open).toBe(1);
      expect(made.ended(outcome, { outcome })).toBe(true);
      expect(made.open).toBe(0);
    }
  });

  test("says that an end was not the last when the router tries again", () => {
    const { made } = driven("a", "b");
    const noted = new NotedRequest();
    made.offer(request("x"), noted);
    expect(made.ended("x", { outcome: "failed" })).toBe(false);
    expect(noted.heard).toEqual(["attempt 1, 0 tokens cached", "attempt 2, 0 tokens cached"]);
    expect(made.open).toBe(1);
    expect(made.ended("x", { outcome: "failed" })).toBe(true);
  });

  test("tells whoever watches of the longer prompt by which an answer is continued", () => {
    const router = new Router(createPolicy("kv-cost"), { blockTokens: 16, maxReplicas: 2, maxBlocks: 1024 });
    for (const worker of ["a", "b"]) router.addReplica({ worker });
    const prompts: number[] = [];
    const observer: RequestObserver = {
      placed: ({ promptTokens }) => prompts.push(promptTokens),
      firstToken: () => {},
      grew: () => {},
      ended: () => {},
    };
    const made = new RouterDriver({ router, clock: { nowNs: () => 0 }, requestEvents: () => {}, observer });
    made.offer(request("x"), new NotedRequest());
    made.firstToken("x");
    const continuation = { promptTokens: 99, sequence: new Uint32Array(0), blocks: 0 };
    expect(made.ended("x", { outcome: "failed", continuation })).toBe(false);
    expect(prompts).toEqual([request("x").promptTokens, 99]);
  });

  test("tells where the time of a decision went, and follows a change of policy", () => {
    const { made, times } = driven("a");
    made.offer(request("x"), new NotedRequest());
    made.setPolicy(createPolicy("round-robin"));
    made.offer(request("y"), new NotedRequest());
    // Every look at this clock takes a nanosecond: before the policy, in it, and after it.
    const once = { matchNs: 1, scoreNs: 1, recordNs: 1 };
    expect(times).toEqual([once, once]);
    expect(made.router.policy.name).toBe("round-robin");
  });

  test("knows no time in the policy when there was nobody to choose from", () => {
    const { made, times } = driven();
    made.offer(request("x"), new NotedRequest());
    expect(times).toEqual([{ matchNs: 1, scoreNs: 0, recordNs: 0 }]);
  });
});
