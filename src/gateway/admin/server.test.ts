import { Agent, get, request as send } from "node:http";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createPolicy } from "../../core/policy/registry.ts";
import { Router } from "../../core/router.ts";
import type { HttpMount } from "../../planes/http-mount/types.ts";
import { BearerToken } from "../access/bearer-token.ts";
import { LocalDecider } from "../local-decider.ts";
import type { ReloadOutcome, Reloading } from "../reload.ts";
import { AdminServer } from "./server.ts";

let decider: LocalDecider;
let admin: AdminServer;
let url: string;

beforeEach(async () => {
  const router = new Router(createPolicy("kv-cost"), {
    blockTokens: 16,
    maxReplicas: 4,
    maxBlocks: 1024,
    records: { detail: "full", capacity: 10, candidateRows: 40 },
  });
  decider = new LocalDecider({ router });
  for (const name of ["a", "b"]) decider.fleet.appeared({ name, url: `http://${name}:1`, model: "m", kvBlocks: 64 });
  const mount: HttpMount = {
    handle: (request, response) => {
      if (request.url !== "/mounted") return false;
      response.end("mounted");
      return true;
    },
  };
  admin = new AdminServer({ decider, mounts: [mount], settings: () => ({ port: 1 }) });
  url = await admin.listen();
});

afterEach(async () => {
  await admin.close();
  await decider.close();
});

async function call(method: string, path: string, body?: object): Promise<{ status: number; body: unknown }> {
  const response = await fetch(url + path, { method, ...(body !== undefined && { body: JSON.stringify(body) }) });
  return { status: response.status, body: await response.json() };
}

/** The answer to a path as it is written, which `fetch` would not send. */
function answerTo(
  method: string,
  path: string,
  headers: Record<string, string> = {},
): Promise<{ status: number | undefined; body: string }> {
  return new Promise((resolve, reject) => {
    const { hostname: host, port } = new URL(url);
    const sent = send({ method, host, port, path, headers }, (response) => {
      let body = "";
      response.on("data", (chunk: Buffer) => (body += chunk.toString()));
      response.on("end", () => resolve({ status: response.statusCode, body }));
    });
    sent.on("error", reject).end();
  });
}

function offer(id: string): void {
  const preparation = { parseMs: 0, tokenizeMs: 0, hashMs: 0 };
  const decided = { place: () => {}, shed: () => {}, over: () => {} };
  decider.offer({ id, promptTokens: 20, sequence: Uint32Array.of(1, 2), blocks: 1, preparation }, decided);
}

describe("the admin API", () => {
  test("lists workers with the load that is modelled and the load they report", async () => {
    offer("x");
    decider.router.report(1, { running: 3, waiting: 1, kvUsage: 0.5 }, 0);
    const { body } = await call("GET", "/admin/workers");
    expect(body).toMatchObject({
      workers: [
        {
          name: "a",
          state: "ready",
          indexState: "approximate",
          models: ["m"],
          modelled: { inFlight: 1 },
          reported: null,
        },
        { name: "b", modelled: { inFlight: 0 }, reported: { running: 3, waiting: 1, kvUsage: 0.5 } },
      ],
    });
  });

  test("drains a worker and lets it serve again", async () => {
    expect(await call("POST", "/admin/workers/a/drain")).toMatchObject({ body: { workers: [{ state: "draining" }] } });
    for (const id of ["1", "2", "3"]) offer(id);
    expect(decider.router.describeLoad(0).modelled.inFlight).toBe(0);
    expect(await call("POST", "/admin/workers/a/undrain")).toMatchObject({ body: { workers: [{ state: "ready" }] } });
    expect((await call("POST", "/admin/workers/nobody/drain")).status).toBe(404);
  });

  test("shows the index", async () => {
    offer("x");
    const { body } = await call("GET", "/admin/index");
    expect(body).toMatchObject({
      blockTokens: 16,
      blocks: 1,
      replicas: [{ name: "a", state: "approximate" }, { name: "b" }],
    });
  });

  test("lists decisions and explains one, candidate by candidate", async () => {
    for (const id of ["x", "y"]) offer(id);
    const { body: list } = await call("GET", "/admin/decisions?limit=1");
    expect(list).toMatchObject({ decisions: [{ decision: 2, request: "y" }] });
    const { body } = await call("GET", "/admin/decisions/2");
    expect(body).toMatchObject({
      decision: 2,
      policy: "kv-cost",
      unit: "blocks",
      candidates: [
        { replica: "a", inFlight: 1, cost: expect.any(Number) as number, terms: expect.any(Array) as unknown[] },
        { replica: "b", inFlight: 0 },
      ],
    });
    expect((await call("GET", "/admin/decisions/99")).status).toBe(404);
    expect((await call("GET", "/admin/decisions?limit=0")).status).toBe(400);
    expect(await call("GET", "/admin/decisions?request=x")).toMatchObject({ body: { decisions: [{ decision: 1 }] } });
  });

  test("changes knobs one by one, and the policy with its own defaults", async () => {
    const changed = await call("PUT", "/admin/policy", { parameters: { overlap_score_weight: 2 } });
    expect(changed.body).toMatchObject({ policy: "kv-cost", parameters: { overlap_score_weight: 2 } });
    await call("PUT", "/admin/policy", { parameters: { router_temperature: 0.5 } });
    expect(decider.router.policy.parameters).toMatchObject({ overlap_score_weight: 2, router_temperature: 0.5 });
    expect(await call("PUT", "/admin/policy", { policy: "round-robin" })).toMatchObject({
      body: { policy: "round-robin" },
    });
    const problems = await Promise.all([
      call("PUT", "/admin/policy", { policy: "no-such" }),
      call("PUT", "/admin/policy", { parameters: { no_such: 1 } }),
      call("PUT", "/admin/policy", { parameters: [] }),
    ]);
    expect(problems.map(({ status }) => status)).toEqual([400, 400, 400]);
    expect(decider.router.policy.name).toBe("round-robin");
  });

  test.each([
    ["the body must be JSON", "{bad"],
    ["the body must be JSON", ""],
    ["the body must be JSON", "[]"],
    ["the body must be JSON", "null"],
    ['"polcy" is none of policy, parameters', '{"polcy":"random"}'],
    ["the body has more than 65536 bytes", `{"policy":"${"x".repeat(70_000)}"}`],
  ])("refuses what is no change of policy: %s", async (message, body) => {
    const before = decider.router.policy;
    const response = await fetch(`${url}/admin/policy`, { method: "PUT", body });
    expect(response.status).toBe(400);
    expect(((await response.json()) as { error: { message: string } }).error.message).toContain(message);
    expect(decider.router.policy).toBe(before);
  });

  test("shows accounts and settings, serves its mounts, and says what it does not know", async () => {
    offer("x");
    expect(await call("GET", "/admin/accounts")).toMatchObject({ body: { offered: 1, unfinished: 1, queued: 0 } });
    expect(await call("GET", "/admin/settings")).toEqual({ status: 200, body: { port: 1 } });
    expect(await (await fetch(`${url}/mounted`)).text()).toBe("mounted");
    expect((await call("GET", "/nothing")).status).toBe(404);
    const other = await fetch(`${url}/admin/policy`, { method: "DELETE" });
    expect([other.status, other.headers.get("allow")]).toEqual([405, "GET, PUT"]);
  });

  test("counts what was turned away before the router heard of it, as the metrics do", async () => {
    offer("x");
    decider.refused("max-streams");
    decider.refused("key_requests");
    const { body } = await call("GET", "/admin/accounts");
    expect(body).toMatchObject({ offered: 3, shed: 2, unfinished: 1, queued: 0 });
    const metrics = await (await fetch(`${url}/metrics`)).text();
    expect(metrics).toContain('warmpath_requests_offered_total{policy="kv-cost"} 3');
    const ended = [...metrics.matchAll(/^warmpath_requests_ended_total\{.*account="shed".*\} (\d+)$/gm)];
    expect(ended.map(([, count]) => count)).toEqual(["1", "1"]);
  });

  test("knows nothing at paths that no URL or no text could have", async () => {
    const paths = ["//", "//?x=1", "//:1", "/admin/workers/%zz", "/admin/workers/%ff/drain"];
    const answers = await Promise.all(paths.map(async (path) => await answerTo("GET", path)));
    expect(answers.map(({ status }) => status)).toEqual([404, 404, 404, 400, 405]);
    expect((await answerTo("POST", "/admin/workers/%ff/drain")).status).toBe(400);
    expect(answers[3].body).toContain("is not percent-encoded UTF-8");
  });

  test("takes no orders from pages of other origins, and from programs it does", async () => {
    const drain = "/admin/workers/a/drain";
    for (const headers of [
      { origin: "https://evil.example" },
      { origin: "null" },
      { "sec-fetch-site": "cross-site" },
    ]) {
      const { status, body } = await answerTo("POST", drain, headers);
      expect([status, body]).toEqual([403, expect.stringContaining('"code":"foreign_page"')]);
    }
    expect((await answerTo("PUT", "/mounted", { origin: "https://evil.example" })).status).toBe(403);
    expect(decider.fleet.workers.map(({ phase }) => phase)).toEqual(["ready", "ready"]);
    expect((await answerTo("GET", "/admin/workers", { origin: "https://evil.example" })).status).toBe(200);
    expect((await answerTo("POST", drain, { origin: url })).status).toBe(200);
    expect((await answerTo("POST", drain)).status).toBe(200);
  });

  test("answers nothing under a name that somebody else made point to this machine", async () => {
    const host = `evil.example:${new URL(url).port}`;
    const { status, body } = await answerTo("GET", "/admin/settings", { host, origin: `http://${host}` });
    expect([status, body]).toEqual([403, expect.stringContaining(`${host} is no name of this machine`)]);
    expect((await answerTo("GET", "/mounted", { host })).status).toBe(403);
    expect((await answerTo("GET", "/admin/settings", { host: "localhost:1" })).status).toBe(200);
  });

  test("has the settings read again where somebody can, and tells how it went", async () => {
    const outcome: ReloadOutcome = { atMs: 1, isApplied: true, changed: ["policy"], needRestart: [], problem: null };
    let last: ReloadOutcome | undefined;
    const reloading: Reloading = {
      get last() {
        return last;
      },
      counts: { applied: 0, refused: 0 },
      reload: () => Promise.resolve((last = last === undefined ? outcome : { ...outcome, isApplied: false })),
    };
    expect((await call("POST", "/admin/reload")).status).toBe(400);
    await admin.close();
    admin = new AdminServer({ decider, reloading });
    url = await admin.listen();
    expect(await call("GET", "/admin/reload")).toEqual({ status: 200, body: { last: null } });
    expect(await call("POST", "/admin/reload")).toEqual({ status: 200, body: outcome });
    expect((await call("POST", "/admin/reload")).status).toBe(409);
    expect(await call("GET", "/admin/reload")).toMatchObject({ body: { last: { isApplied: false } } });
  });

  test("sends whoever is still connected to its successor once it has retired", async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const statusOf = (): Promise<[number | undefined, string | undefined]> =>
      new Promise((resolve, reject) => {
        get(`${url}/admin/accounts`, { agent }, (response) => {
          response.resume().on("end", () => resolve([response.statusCode, response.headers.location]));
        }).on("error", reject);
      });
    expect(await statusOf()).toEqual([200, undefined]);
    admin.retire();
    expect(await statusOf()).toEqual([307, "/admin/accounts"]);
    await expect(statusOf()).rejects.toThrow(/ECONNREFUSED/);
    agent.destroy();
  });

  test("serves nobody without its token, its mounts and metrics included", async () => {
    const token = new BearerToken("first-token");
    const guarded = new AdminServer({ decider, token, mounts: [{ handle: (_, response) => !!response.end("mine") }] });
    const guardedUrl = await guarded.listen();
    const statusWith = async (authorization?: string): Promise<number> =>
      (await fetch(`${guardedUrl}/metrics`, { headers: authorization === undefined ? {} : { authorization } })).status;
    const statuses = await Promise.all([undefined, "Bearer", "Bearer wrong", "first-token"].map(statusWith));
    expect(statuses).toEqual([401, 401, 401, 401]);
    expect(await statusWith("Bearer first-token")).toBe(200);
    token.replace("second-token");
    expect(await statusWith("Bearer first-token")).toBe(401);
    expect(await statusWith("bearer second-token")).toBe(200);
    await guarded.close();
  });
});
