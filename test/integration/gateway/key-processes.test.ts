/** Limits of keys hold for all proxies of a gateway together. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runWarmpath } from "../../support/run-program.ts";
import { MODEL, ProgramFleet } from "./program-fleet.ts";

const ALLOWED = 6;
const ASKED = 24;

let folder: string;
let fleet: ProgramFleet;
let key: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "warmpath-keys-"));
  const flags = ["--name", "team", "--requests-per-minute", String(ALLOWED), "--json"];
  const made = JSON.parse((await runWarmpath(["key", ...flags])).stdout) as { key: string; entry: object };
  key = made.key;
  const path = join(folder, "keys.yaml");
  await writeFile(path, JSON.stringify([made.entry]));
  fleet = await ProgramFleet.start({ events: "http", gatewayFlags: ["--processes", "2", "--api-keys", path] });
});
afterAll(async () => {
  await fleet.close();
  await rm(folder, { recursive: true, force: true });
});

async function status(at: number): Promise<number> {
  const response = await fetch(`${fleet.gateway.url}/v1/chat/completions`, {
    method: "POST",
    // A connection each, so that all proxies get some.
    headers: { authorization: `Bearer ${key}`, connection: "close" },
    body: JSON.stringify({ model: MODEL, messages: [{ role: "user", content: `hello ${at}` }], max_tokens: 2 }),
  });
  await response.arrayBuffer();
  return response.status;
}

test("two proxies let in as many requests as the key has, and every request is counted once", async () => {
  const statuses: number[] = [];
  for (let at = 0; at < ASKED; at++) statuses.push(await status(at));
  const served = statuses.filter((one) => one === 200).length;
  // A request or two may have come free while the others were served.
  expect(served).toBeGreaterThanOrEqual(ALLOWED);
  expect(served).toBeLessThan(ALLOWED + 4);
  expect(statuses.filter((one) => one === 429)).toHaveLength(ASKED - served);
  const metrics = await (await fetch(`${fleet.gateway.url}/metrics`)).text();
  const count = (series: string): number => Number(metrics.split(`${series} `)[1]?.split("\n", 1)[0] ?? 0);
  expect(count('warmpath_requests_offered_total{policy="warmpath"}')).toBe(ASKED);
  expect(count('warmpath_key_requests_total{key="team",result="admitted"}')).toBe(served);
  expect(count('warmpath_key_requests_total{key="team",result="key_requests"}')).toBe(ASKED - served);
  const shed = 'warmpath_requests_ended_total{policy="warmpath",account="shed",reason="key_requests"}';
  expect(count(shed)).toBe(ASKED - served);
});
