/** Who may use the admin API, and that our own programs can. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { startTestGateway } from "../../support/running-gateway.ts";
import { startTestWorker } from "../../support/running-worker.ts";
import { runWarmpath } from "../../support/run-program.ts";
import { startProgram } from "./program-fleet.ts";

const TOKEN = "a-token-of-some-length";
const opened: { close(): unknown }[] = [];
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "warmpath-admin-"));
});

afterEach(async () => {
  for (const one of opened.splice(0).toReversed()) await one.close();
  vi.unstubAllEnvs();
  await rm(folder, { recursive: true, force: true });
});

async function statusAt(url: string, token?: string): Promise<number> {
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  return (await fetch(url, { headers })).status;
}

test.each([[[]], [["--processes", "2"]]])("beyond this machine it needs a token (%j)", async (more) => {
  const words = ["gateway", "--port", "0", "--admin-port", "0", "--admin-host", "0.0.0.0", "--tokenizer", "word"];
  const { status, stdout, stderr } = await runWarmpath([...words, ...more]);
  expect({ status, stdout, stderr }).toEqual({
    status: 2,
    stdout: "",
    stderr:
      "warmpath gateway: --admin-host 0.0.0.0 lets others reach the admin API: give --admin-token-file or WARMPATH_ADMIN_TOKEN\n",
  });
});

test("a token that is hardly one is refused", async () => {
  vi.stubEnv("WARMPATH_ADMIN_TOKEN", "short");
  await expect(startTestGateway({ tokenizer: "word" })).rejects.toThrow("WARMPATH_ADMIN_TOKEN must hold one token");
});

test("with a token it is served anywhere, to those who have it, and another can take its place", async () => {
  const path = join(folder, "token");
  await writeFile(path, `${TOKEN}\n`);
  const gateway = await startTestGateway({ tokenizer: "word", adminHost: "0.0.0.0", adminTokenFile: path });
  opened.push(gateway);
  const url = `${gateway.adminUrl.replace("0.0.0.0", "127.0.0.1")}/admin/settings`;
  expect([await statusAt(url), await statusAt(url, TOKEN)]).toEqual([401, 200]);
  await writeFile(path, "another-token-of-some-length");
  await vi.waitFor(async () => expect(await statusAt(url, TOKEN)).toBe(401), { timeout: 10_000 });
  expect(await statusAt(url, "another-token-of-some-length")).toBe(200);
});

test("our own worker registers, and our own doctor looks, with the token of the environment", async () => {
  const environment = { WARMPATH_ADMIN_TOKEN: TOKEN };
  const words = ["gateway", "--port", "0", "--admin-port", "0", "--discover", "registration"];
  const gateway = await startProgram(words, environment);
  opened.push({ close: () => gateway.stop("SIGKILL") });
  const adminUrl = String(gateway.details["adminUrl"]);
  vi.stubEnv("WARMPATH_ADMIN_TOKEN", TOKEN);
  const worker = await startTestWorker({ name: "w", register: adminUrl });
  opened.push({ close: () => worker.close(0) });
  await vi.waitFor(async () => expect((await fetch(`${gateway.url}/ready`)).status).toBe(200), { timeout: 20_000 });
  const examined = ["doctor", "--gateway", gateway.url, "--admin", adminUrl, "--json"];
  const { stdout } = await runWarmpath(examined, { environment });
  const { findings } = JSON.parse(stdout) as { findings: { code: string; status: string }[] };
  expect(findings.filter(({ status }) => status === "failed")).toEqual([]);
  const stranger = await runWarmpath(examined, { environment: { WARMPATH_ADMIN_TOKEN: "" } });
  expect(stranger.status).toBe(1);
});
