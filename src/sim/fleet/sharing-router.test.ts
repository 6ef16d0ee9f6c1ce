import { expect, test } from "vitest";
import { createPolicy } from "../../core/policy/registry.ts";
import { Router } from "../../core/router.ts";
import { SharingRouter } from "./sharing-router.ts";
import { SplitRouter } from "./split-router.ts";

const WORKERS = 4;
const DELAY_NS = 100;

function routersOf(count: number): Router[] {
  const options = { blockTokens: 16, maxReplicas: WORKERS, maxBlocks: 1024, admission: { mode: "engine" } } as const;
  return Array.from({ length: count }, () => new Router(createPolicy("least-loaded"), options));
}

/** Offers requests one after another, so far apart that news has come in between, and counts who got how many. */
function spread(router: SharingRouter | SplitRouter, requests: number): number[] {
  const counts = Array.from({ length: WORKERS }, () => 0);
  for (let worker = 0; worker < WORKERS; worker++) router.addReplica({ worker: `worker-${worker}` });
  for (let i = 0; i < requests; i++) {
    const request = { id: `request-${i}`, promptTokens: 160, sequence: new Uint32Array(0), blocks: 0 };
    for (const effect of router.offer(request, i * 2 * DELAY_NS)) if (effect.kind === "place") counts[effect.replica]++;
  }
  return counts;
}

test("routers that share see each other's load, and others do not", () => {
  expect(spread(new SharingRouter(routersOf(4), DELAY_NS), 40)).toEqual([10, 10, 10, 10]);
  expect(Math.max(...spread(new SplitRouter(routersOf(4)), 40))).toBeGreaterThan(10);
});

test("what has ended is no load any more, for anybody", () => {
  const routers = routersOf(2);
  const router = new SharingRouter(routers, DELAY_NS);
  router.addReplica({ worker: "a" });
  for (let i = 0; i < 10; i++) {
    router.offer({ id: `request-${i}`, promptTokens: 16, sequence: new Uint32Array(0), blocks: 0 }, i);
  }
  router.tick(1000);
  expect(routers.map(({ load }) => load.size)).toEqual([10, 10]);
  for (let i = 0; i < 10; i++) router.ended(`request-${i}`, { outcome: "completed" }, 2000);
  router.tick(3000);
  expect(routers.map(({ load }) => load.size)).toEqual([0, 0]);
});

test("an answer that one has heard is expected by all, where engines tell nothing", () => {
  const routers = routersOf(2);
  const router = new SharingRouter(routers, DELAY_NS);
  router.addReplica({ worker: "a", kvBlocks: 100 });
  const kept = { sequence: Uint32Array.of(1, 2, 3, 4, 5, 6), blocks: 3 };
  router.offer({ id: "request", promptTokens: 32, sequence: kept.sequence, blocks: 2 }, 0);
  router.firstToken("request", 1);
  router.ended("request", { outcome: "completed", kept }, 2);
  router.tick(1000);
  expect(routers.map(({ index }) => index.match(kept.sequence, 3).cached[0])).toEqual([3, 3]);
});
