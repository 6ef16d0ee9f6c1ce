import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { AdminFleet } from "./admin-fleet.ts";

interface Answers {
  [path: string]: unknown;
}

/** An admin API that answers what it is told to, and counts. */
async function adminApi(answers: Answers) {
  const asked: string[] = [];
  const tokens = new Set<string | undefined>();
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    tokens.add(request.headers.authorization);
    const answer = answers[`${request.method} ${request.url}`];
    response
      .writeHead(answer === undefined ? 404 : 200)
      .end(JSON.stringify(answer ?? { error: { message: `unknown policy "x"` } }));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked, tokens, server };
}

const DECISION = {
  decision: 7,
  request: "request-7",
  policy: "kv-cost",
  rule: "prefill + decode",
  unit: "blocks",
  promptTokens: 320,
  promptBlocks: 10,
  chosen: "a",
  runnerUp: "b",
  margin: 5,
  tied: 1,
  refusal: null,
  queueWaitNs: 2_000_000,
  predictedCachedTokens: 256,
  filtered: { notReady: ["c"], tried: [], busy: [] },
  candidates: [
    { replica: "a", cachedBlocks: 8, activeBlocks: 3, inFlight: 1, cost: 5, terms: [{ name: "prefill", value: 2 }] },
    { replica: "b", cachedBlocks: 0, activeBlocks: 0, inFlight: 0, cost: null, terms: [] },
  ],
};

function answersOf(): Answers {
  return {
    "GET /admin/workers": {
      workers: [
        {
          name: "a",
          url: "http://127.0.0.1:1",
          phase: "ready",
          indexState: "live",
          modelled: { inFlight: 4 },
          reported: null,
          capacity: { batchSlots: 64 },
        },
      ],
    },
    "GET /admin/policy": { policy: "kv-cost", parameters: { form: "mission" }, available: [] },
    "GET /admin/accounts": { queued: 3 },
    "GET /admin/decisions?limit=8": { decisions: [{ decision: 7 }] },
    "GET /admin/decisions/7": DECISION,
  };
}

test("tells of workers and decisions as the gateway does, with what is missing as null", async () => {
  const { url } = await adminApi(answersOf());
  const fleet = new AdminFleet({ adminUrl: url, now: () => 5 });
  await fleet.refresh();
  expect(fleet.view()).toMatchObject({ policy: "kv-cost", queued: 3, isAnswering: true });
  expect(fleet.view()?.workers).toMatchObject([
    { name: "a", state: "ready", running: 4, queued: null, kvShare: null, batchSlots: 64 },
  ]);
  expect(fleet.view()?.decisions).toMatchObject([
    {
      chosen: "a",
      queueWaitMs: 2,
      observedCachedTokens: null,
      ttftMs: null,
      filtered: [{ worker: "c", reason: "not ready" }],
      candidates: [
        { worker: "a", cachedBlocks: 8, prefillBlocks: 2, loadBlocks: 3, cost: 5 },
        { worker: "b", cachedBlocks: 0, prefillBlocks: 10, cost: null },
      ],
    },
  ]);
});

test("asks for the candidates of a decision once, and takes what became of it from the list", async () => {
  const answers = answersOf();
  const { url, asked } = await adminApi(answers);
  const fleet = new AdminFleet({ adminUrl: url, now: () => 5 });
  await fleet.refresh();
  answers["GET /admin/decisions?limit=8"] = {
    decisions: [{ decision: 7, observedCachedTokens: 250, firstTokenNs: 120_000_000 }],
  };
  await fleet.refresh();
  expect(fleet.view()?.decisions).toMatchObject([{ observedCachedTokens: 250, ttftMs: 120 }]);
  expect(asked.filter((one) => one === "GET /admin/decisions/7")).toHaveLength(1);
});

test("keeps what it knew when the gateway is gone, and says that it does not answer", async () => {
  const { url, server } = await adminApi(answersOf());
  const fleet = new AdminFleet({ adminUrl: url, now: () => 5 });
  await fleet.refresh();
  server.closeAllConnections();
  server.close();
  await fleet.refresh();
  expect(fleet.view()).toMatchObject({ isAnswering: false, workers: [{ name: "a" }] });
});

test("says why it cannot be asked, and nothing of that once it can", async () => {
  const answers: Answers = {};
  const { url } = await adminApi(answers);
  const fleet = new AdminFleet({ adminUrl: url, now: () => 5 });
  await fleet.refresh();
  expect([fleet.view(), fleet.problem]).toEqual([undefined, 'unknown policy "x"']);
  answers["GET /admin/workers"] = { workers: "none" };
  for (const [path, answer] of Object.entries(answersOf())) answers[path] ??= answer;
  await fleet.refresh();
  expect(fleet.problem).toMatch(/\/admin\/workers does not answer as the admin API of a gateway does/);
  Object.assign(answers, answersOf());
  await fleet.refresh();
  expect([fleet.view()?.policy, fleet.problem]).toEqual(["kv-cost", undefined]);
});

test("passes the gateway's own words on when it refuses a policy", async () => {
  const { url } = await adminApi(answersOf());
  const fleet = new AdminFleet({ adminUrl: url, now: () => 5 });
  await expect(fleet.setPolicy("x")).rejects.toThrow('unknown policy "x"');
});

test("sends its token to the gateway, and never to a worker", async () => {
  const worker = await adminApi({ "POST /reset_prefix_cache": {} });
  const answers = answersOf();
  const [listed] = (answers["GET /admin/workers"] as { workers: object[] }).workers;
  answers["GET /admin/workers"] = { workers: [{ ...listed, url: worker.url }] };
  const gateway = await adminApi(answers);
  const fleet = new AdminFleet({ adminUrl: gateway.url, adminToken: "secret", now: () => 5 });
  await fleet.refresh();
  expect(await fleet.resetCaches()).toEqual({ workers: 1, problems: [] });
  expect([...gateway.tokens]).toEqual(["Bearer secret"]);
  expect([worker.asked, [...worker.tokens]]).toEqual([["POST /reset_prefix_cache"], [undefined]]);
});

test("resets the caches of workers that can, and names the others", async () => {
  const answers = answersOf();
  const able = await adminApi({ "POST /reset_prefix_cache": {} });
  const unable = await adminApi({});
  const [listed] = (answers["GET /admin/workers"] as { workers: object[] }).workers;
  const workers = [unable, able].map(({ url }, at) => ({ ...listed, name: `w${at}`, url }));
  answers["GET /admin/workers"] = { workers };
  const { url } = await adminApi(answers);
  const fleet = new AdminFleet({ adminUrl: url, now: () => 5 });
  await fleet.refresh();
  expect(await fleet.resetCaches()).toEqual({ workers: 1, problems: ['w0: unknown policy "x"'] });
  expect(able.asked).toEqual(["POST /reset_prefix_cache"]);
});
