import { describe, expect, test } from "vitest";
import { changesOf, withLiveSettings } from "./live-settings.ts";
import { type GatewaySettings, type GivenSettings, readSettings } from "./settings.ts";

function settings(given: GivenSettings = {}): GatewaySettings {
  return { ...readSettings(given), blockTokens: 16, tokenizer: "word" };
}

describe("settings that are read again", () => {
  test("are told apart by whether they need a restart, and named as flags are", () => {
    const after = settings({
      policy: "kv-cost",
      queueSeconds: 5,
      worker: ["http://a:1"],
      indexBlocks: 4096,
      host: "::",
    });
    expect(changesOf(settings(), after)).toEqual({
      live: ["worker", "policy", "queue-seconds"],
      restart: ["host", "index-blocks"],
    });
    expect(changesOf(settings({ discover: "dns:a:1" }), settings())).toEqual({ live: [], restart: ["discover"] });
    expect(changesOf(after, settings({ ...after }))).toEqual({ live: [], restart: [] });
  });

  test("count where they may change, and stay where they may not", () => {
    const inForce = settings({ policy: "kv-cost", indexBlocks: 4096 });
    const next = withLiveSettings(inForce, settings({ policy: "round-robin", maxStreams: 7 }));
    expect(next).toEqual({ ...inForce, policy: "round-robin", maxStreams: 7 });
  });

  test.each([
    [{ set: ["nonsense=1"] }, /nonsense/],
    [{ watermark: ["batchSlotsFraction=-1"] }, /batchSlotsFraction/],
    [{ worker: ["a=http://a:1", "a=http://b:1"] }, /two workers/],
  ])("are refused as a whole if one cannot be used: %j", (given, reason) => {
    expect(() => withLiveSettings(settings(), settings(given))).toThrow(reason);
  });
});
