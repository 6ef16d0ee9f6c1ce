import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pc from "picocolors";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { GatewayAdmin } from "../../src/cli/commands/run/live/gateway-admin.ts";
import { runCli } from "../../src/cli/program.ts";
import { readResults } from "../../src/lab/results/store.ts";
import { type GatewayUnderTest, startTestGateway } from "../support/running-gateway.ts";
import { startTestWorker } from "../support/running-worker.ts";

const EXPERIMENT = {
  name: "endpoint",
  fleet: { model: "llama-3.1-8b", gpu: "h100", workers: 1, engine: { profile: "vllm" }, blockTokens: 16 },
  workload: { conversations: { starters: 2, starterTokens: [50, 60], outputTokensByTurn: [4], thinkMs: [1, 2] } },
  load: { concurrency: [3], rampSeconds: 0 },
  arms: [
    { name: "rr", policy: "round-robin" },
    { name: "least", policy: "least-loaded" },
  ],
  warmUpRequests: 3,
  windowSeconds: 0.3,
  drainSeconds: 5,
};
const FORMER = { policy: "kv-cost", parameters: expect.objectContaining({ overlap_score_weight: 2 }) as object };

let folder: string;
let gateway: GatewayUnderTest;
let admin: GatewayAdmin;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "warmpath-endpoint-"));
  const worker = await startTestWorker({ speed: 1000 });
  const policy = { policy: "kv-cost", set: ["overlap_score_weight=2"] };
  gateway = await startTestGateway({ worker: [worker.url], admission: "engine", ...policy });
  admin = new GatewayAdmin(gateway.adminUrl);
  onTestFinished(async () => {
    await gateway.close();
    await worker.close(0);
    rmSync(folder, { recursive: true });
  });
});

async function run(changes: object, ...words: string[]): Promise<{ code: number; errors: string[] }> {
  const path = join(folder, "experiment.yaml");
  writeFileSync(path, JSON.stringify({ ...EXPERIMENT, ...changes }));
  const errors: string[] = [];
  const terminal = {
    colours: pc.createColors(false),
    debug: false,
    print: () => {},
    printError: (line: string) => void errors.push(line),
    readStdin: () => Promise.resolve(""),
  };
  return { code: await runCli(["run", path, "--on", gateway.url, ...words], terminal), errors };
}

describe("an experiment on a gateway", () => {
  test("has every arm decide in its turn and gives the gateway its policy back", async () => {
    const out = join(folder, "out");
    const { code, errors } = await run({ live: { adminUrl: gateway.adminUrl } }, "--out", out);
    expect({ code, errors }).toEqual({
      code: 0,
      errors: ["least against rr: policy.name least-loaded instead of round-robin"],
    });
    const { content } = await readResults(out);
    expect(content?.cells.map(({ arm, accounting }) => [arm, accounting.completed > 0])).toEqual([
      ["rr", true],
      ["least", true],
    ]);
    expect(await admin.policy()).toEqual(FORMER);
  });

  test("gives it back after a failure too", async () => {
    const live = { adminUrl: gateway.adminUrl, hooks: { describe_arm: "echo lost >&2; exit 3" } };
    const { code, errors } = await run({ live });
    expect(code).toBe(2);
    expect(errors.at(-1)).toBe("warmpath run: hook describe_arm ended with 3: lost");
    expect(await admin.policy()).toEqual(FORMER);
  });

  test("says that it could not be given back, besides what went wrong", async () => {
    let asked = 0;
    const broken = createServer((request, response) => {
      if (request.method === "PUT" && ++asked > 1) return void response.writeHead(500).end("gone");
      response.end(JSON.stringify({ policy: "random", parameters: {}, workers: [], admission: "engine" }));
    }).listen(0, "127.0.0.1");
    await once(broken, "listening");
    onTestFinished(() => void broken.close());
    const adminUrl = `http://127.0.0.1:${(broken.address() as AddressInfo).port}`;
    const { code, errors } = await run({ live: { adminUrl, hooks: { describe_arm: "exit 3" }, readySeconds: 0.1 } });
    expect(code).toBe(2);
    expect(errors.slice(-2)).toEqual([
      `the admin API at ${adminUrl} cannot be used: PUT ${adminUrl}/admin/policy answered with 500: gone`,
      "warmpath run: hook describe_arm ended with 3",
    ]);
  });

  test("is refused where nothing would switch its arms, before anything is sent", async () => {
    const { code, errors } = await run({});
    expect(code).toBe(2);
    expect(errors).toEqual([
      expect.stringMatching(/^warmpath run: nothing switches http.* between the arms rr and least;/),
    ]);
    const accounts = await fetch(`${gateway.adminUrl}/admin/accounts`);
    expect(await accounts.json()).toMatchObject({ offered: 0 });
  });

  test("runs one arm where nothing switches any", async () => {
    expect(await run({ live: { unproven: "label" } }, "--arms", "rr")).toEqual({ code: 0, errors: [] });
    expect(await admin.policy()).toEqual(FORMER);
  });
});

describe("the admin API that an experiment names", () => {
  test("gives an arm its own knobs and none of the arm before", async () => {
    await admin.setPolicy("kv-cost", { overlap_score_weight: 3, router_temperature: 0.5 });
    await admin.setPolicy("kv-cost", { router_temperature: 0.25 });
    expect((await admin.policy()).parameters).toMatchObject({ overlap_score_weight: 1, router_temperature: 0.25 });
  });

  test("ends the run with one line where nobody is there", async () => {
    const adminUrl = "http://127.0.0.1:1";
    const { code, errors } = await run({ live: { adminUrl } });
    expect(code).toBe(2);
    expect(errors).toEqual([
      "warmpath run: the admin API at http://127.0.0.1:1 cannot be used: connect ECONNREFUSED 127.0.0.1:1",
    ]);
  });

  test("ends the run with one line where it is something else", async () => {
    const page = createServer((_, response) => response.end("<html>")).listen(0, "127.0.0.1");
    await once(page, "listening");
    onTestFinished(() => void page.close());
    const adminUrl = `http://127.0.0.1:${(page.address() as AddressInfo).port}`;
    const { code, errors } = await run({ live: { adminUrl } });
    expect(code).toBe(2);
    expect(errors).toEqual([`warmpath run: the admin API at ${adminUrl} cannot be used: the answer is not JSON`]);
  });
});
