import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { isLive } from "../../../src/cli/commands/gateway/live-settings.ts";
import { flagName, settingKeys } from "../../../src/cli/commands/gateway/settings.ts";
import { createPolicy } from "../../../src/core/policy/registry.ts";
import { Router } from "../../../src/core/router.ts";
import { LocalDecider } from "../../../src/gateway/local-decider.ts";
import { registerPeerGauges } from "../../../src/gateway/metrics/peer-gauges.ts";
import { registerReloadGauges } from "../../../src/gateway/metrics/reload-gauges.ts";
import { REPOSITORY } from "../../support/run-program.ts";

/** A page of the reference with its tables' padding taken out. */
function page(name: string): string {
  return readFileSync(join(REPOSITORY, "docs", "reference", name), "utf8").replaceAll(/ +/g, " ");
}

test("every setting of the gateway is in its reference, with its default, what it means and how it changes", () => {
  const text = page("gateway.md");
  for (const { key, about, default: value } of settingKeys()) {
    const change = isLive(key) ? "reload" : "restart";
    expect(text).toContain(`| \`${flagName(key)}\` | ${value === "" ? "" : `\`${value}\` `}| ${about} | ${change} |`);
  }
});

test("every metric of the gateway is in its reference", async () => {
  const router = new Router(createPolicy("random"), { blockTokens: 16, maxReplicas: 1, maxBlocks: 1024 });
  const decider = new LocalDecider({ router });
  const reload = (): never => {
    throw new Error("nobody asks");
  };
  registerReloadGauges(decider.metrics.registry, { last: undefined, counts: { applied: 0, refused: 0 }, reload });
  const counts = { sent: 0, dropped: 0, heard: 0, malformed: 0, otherVersion: 0 };
  registerPeerGauges(decider.metrics.registry, { peers: [], counts });
  const names = [...(await decider.metricsText()).matchAll(/^# TYPE (\w+)/gm)].map(([, name]) => name);
  await decider.close();
  expect(names.length).toBeGreaterThan(20);
  const text = page("metrics.md");
  expect(names.filter((name) => !text.includes(`| \`${name}\` |`))).toEqual([]);
});

test("every code that the gateway answers with is in its reference", () => {
  const sources = ["src/gateway/openai-errors.ts", "src/core/admission/types.ts"].map((path) =>
    readFileSync(join(REPOSITORY, path), "utf8"),
  );
  const unions = sources.flatMap((source) => [...source.matchAll(/export type (?:GatewayError|Shed)Code =([^;]+);/g)]);
  const codes = unions.flatMap(([, union]) => [...union.matchAll(/"([\w-]+)"/g)].map(([, code]) => code));
  const text = page("gateway.md");
  expect(codes.length).toBeGreaterThan(15);
  expect(codes.filter((code) => !text.includes(`\`${code}\``))).toEqual([]);
});
