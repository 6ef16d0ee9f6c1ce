import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { ADMISSION_MODES } from "../../../core/admission/types.ts";
import { createPolicyFrom } from "./router-settings.ts";
import { resolveSettings } from "./setting-sources.ts";
import { settingKeys, type WrittenSettings } from "./settings.ts";
import { workersFrom } from "./worker-option.ts";

async function resolved(
  flags: Record<string, unknown>,
  environment: Record<string, string> = {},
  file?: string,
): Promise<WrittenSettings> {
  return (await resolveSettings({ flags, environment, file })).settings;
}

describe("the gateway's settings", () => {
  test("are taken from flags before the environment, and from that before a file", async () => {
    const folder = mkdtempSync(join(tmpdir(), "warmpath-settings-"));
    const file = join(folder, "gateway.yaml");
    writeFileSync(file, "port: 1\nblockTokens: 32\nadmission: shed\nworker: [http://a:1]\n");
    const environment = { WARMPATH_PORT: "2", WARMPATH_BLOCK_TOKENS: "64", WARMPATH_WORKER: "http://b:1 http://c:1" };
    const settings = await resolved({ port: "3" }, environment, file);
    expect(settings).toMatchObject({
      port: 3,
      blockTokens: 64,
      admission: "shed",
      worker: ["http://b:1", "http://c:1"],
    });
    rmSync(folder, { recursive: true });
  });

  test.each([
    [{ port: "many" }, "port must be a number"],
    [{ blockTokens: "0" }, "blockTokens must be 1 or more"],
    [{ maxWorkers: "1e9" }, "maxWorkers must be 65536 or less"],
    [{ indexBlocks: "1e12" }, "indexBlocks must be 67108848 or less"],
    [{ recordsKept: "1e9" }, "recordsKept must be 1000000 or less"],
    [{ processes: "1e6" }, "processes must be 256 or less"],
    [{ admission: "maybe" }, "admission must be valid"],
    [{ nothing: "1" }, "nothing is not a known field"],
  ])("with %j are refused in one line", async (flags, expected) => {
    await expect(resolved(flags)).rejects.toThrow(expected);
  });
});

describe("Dynamo's names", () => {
  test.each([
    ["kv", "kv-cost"],
    ["round_robin", "round-robin"],
    ["round-robin", "round-robin"],
    ["random", "random"],
    ["power_of_two", "power-of-two"],
    ["least-loaded", "least-loaded"],
  ])("DYN_ROUTER_MODE=%s is the policy %s, and so is --router-mode", async (mode, policy) => {
    expect((await resolved({}, { DYN_ROUTER_MODE: mode })).policy).toBe(policy);
    expect((await resolved({ routerMode: mode }, { DYN_ROUTER_MODE: "random" })).policy).toBe(policy);
  });

  test("an own name goes before an alias of the same source", async () => {
    const environment = { DYN_ROUTER_MODE: "kv", WARMPATH_POLICY: "product", DYN_KV_CACHE_BLOCK_SIZE: "32" };
    expect(await resolved({}, environment)).toMatchObject({ policy: "product", blockTokens: 32 });
    expect((await resolved({ routerMode: "kv", policy: "random" })).policy).toBe("random");
  });

  test("knobs apply where the policy has them, so that both arms can be started with the same flags", async () => {
    const flags = { kvOverlapScoreWeight: "2", routerTemperature: "0.5", routerResetStates: true };
    const kv = await resolveSettings({ flags, environment: { DYN_ROUTER_MODE: "kv" }, file: undefined });
    expect(createPolicyFrom(kv.settings).parameters).toMatchObject({
      overlap_score_weight: 2,
      router_temperature: 0.5,
    });
    const blind = await resolveSettings({ flags, environment: { DYN_ROUTER_MODE: "round_robin" }, file: undefined });
    expect(createPolicyFrom(blind.settings).name).toBe("round-robin");
    expect(blind.notes).toContain("--router-temperature: round-robin has no router_temperature; ignored");
  });

  test("planes are understood as far as there are any", async () => {
    const { settings, notes } = await resolveSettings({
      flags: {},
      environment: { DYN_EVENT_PLANE: "zmq", DYN_REQUEST_PLANE: "tcp" },
      file: undefined,
    });
    expect(settings.eventPlane).toBe("zmq");
    expect(notes).toEqual(["DYN_REQUEST_PLANE=tcp: requests go to engines over HTTP/1.1 here"]);
    const overNats = await resolved({}, { DYN_EVENT_PLANE: "nats", DYN_REQUEST_PLANE: "nats" });
    expect(overNats).toMatchObject({ eventPlane: "nats://localhost:4222", requestPlane: "nats://localhost:4222" });
    await expect(resolved({}, { DYN_ROUTER_MODE: "direct" })).rejects.toThrow(/must be/);
  });
});

describe("workers on the command line", () => {
  test("have names, addresses of events, and what is known of the engine", () => {
    expect(
      workersFrom(["http://a:1", "b=http://b:1,events=tcp://b:5557,replay=tcp://b:5558,dp-ranks=2,kv-blocks=99"]),
    ).toEqual([
      { name: "worker-1", url: "http://a:1" },
      {
        name: "b",
        url: "http://b:1",
        dpRanks: 2,
        kvBlocks: 99,
        events: { url: "tcp://b:5557", replayUrl: "tcp://b:5558" },
      },
    ]);
  });

  test.each([
    "a:1",
    "ftp://a",
    "http://a:1,slots=2",
    "http://a:1,kv-blocks=0",
    "http://a:1,kv-blocks=4294967296",
    "http://a:1,dp-ranks=1000000000",
    "http://a:1,events=5557",
    "http://a:1,topic=b",
  ])("%s is refused", (written) => {
    expect(() => workersFrom([written])).toThrow("--worker");
  });

  test.each(["工人", "a→b", " a", "a ", "a\nb", "a\u0000"])(
    "a name that no header can carry is refused: %j",
    (name) => {
      expect(() => workersFrom([`${name}=http://a:1`])).toThrow(
        `--worker ${JSON.stringify(name)}: a name must be of printable Latin-1 characters`,
      );
      expect(workersFrom(["wörker 1=http://a:1"])).toEqual([{ name: "wörker 1", url: "http://a:1" }]);
    },
  );

  test("two of one name are refused", () => {
    expect(() => workersFrom(["a=http://a:1", "a=http://b:1"])).toThrow("two workers have this name");
  });
});

test("what is said of a setting names the words that it takes", () => {
  const about = (key: string): string => settingKeys().find((one) => one.key === key)?.about ?? "";
  for (const mode of ADMISSION_MODES) expect(about("admission")).toContain(mode);
  for (const detail of ["full", "summary"]) expect(about("records")).toContain(detail);
  for (const plane of ["auto", "http", "zmq", "nats://", "none"]) expect(about("eventPlane")).toContain(plane);
});
