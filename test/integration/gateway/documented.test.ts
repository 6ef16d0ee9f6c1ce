import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { settingKeys } from "../../../src/cli/commands/gateway/settings.ts";
import { createPolicy } from "../../../src/core/policy/registry.ts";
import { Router } from "../../../src/core/router.ts";
import { LocalDecider } from "../../../src/gateway/local-decider.ts";
import { REPOSITORY } from "../../support/run-program.ts";

/** A page of the reference with its tables' padding taken out. */
function page(name: string): string {
  return readFileSync(join(REPOSITORY, "docs", "reference", name), "utf8").replaceAll(/ +/g, " ");
}

test("every setting of the gateway is in its reference, with its default and what it means", () => {
  const text = page("gateway.md");
  for (const { key, about, default: value } of settingKeys()) {
    const name = key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    expect(text).toContain(`| \`${name}\` | ${value === "" ? "" : `\`${value}\` `}| ${about} |`);
  }
});

test("every metric of the gateway is in its reference", async () => {
  const router = new Router(createPolicy("random"), { blockTokens: 16, maxReplicas: 1, maxBlocks: 1024 });
  const decider = new LocalDecider({ router });
  const names = [...(await decider.metricsText()).matchAll(/^# TYPE (\w+)/gm)].map(([, name]) => name);
  await decider.close();
  expect(names.length).toBeGreaterThan(20);
  const text = page("metrics.md");
  expect(names.filter((name) => !text.includes(`| \`${name}\` |`))).toEqual([]);
});
