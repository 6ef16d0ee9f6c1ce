import { expect, test } from "vitest";
import { NS_PER_SECOND } from "../../../core/clock.ts";
import type { RouterRules } from "../../../core/router-options.ts";
import { rulesFrom } from "./router-settings.ts";
import { type GivenSettings, readSettings } from "./settings.ts";

const watermarks = (given: GivenSettings): object => rules(given).admission.watermarks;

function rules(given: GivenSettings): RouterRules {
  return rulesFrom({ ...readSettings(given), blockTokens: 16, tokenizer: "word" });
}

test("a request counts for as long as the gateway waits for its worker", () => {
  const seconds = (given: GivenSettings): number => rules(given).inactivityNs / NS_PER_SECOND;
  expect(seconds({})).toBeGreaterThan(600);
  expect(seconds({ answerSeconds: 7200 })).toBeGreaterThan(7200);
  expect(seconds({ firstByteSeconds: 3600 })).toBeGreaterThan(3600);
});

test("a worker may have waiting what it computes at once where requests queue, and nothing where they are refused", () => {
  expect(watermarks({})).toEqual({ batchSlotsFraction: 2, prefillStepFraction: 64, kvBlocksFraction: 2 });
  expect(watermarks({ admission: "shed" })).toEqual({
    batchSlotsFraction: 1,
    prefillStepFraction: 16,
    kvBlocksFraction: 1,
  });
});

test("a watermark that is written goes before the usual one, and off is none", () => {
  expect(watermarks({ watermark: ["batchSlotsFraction=1", "prefillStepFraction=off", "prefillTokens=9000"] })).toEqual({
    batchSlotsFraction: 1,
    prefillStepFraction: undefined,
    prefillTokens: 9000,
    kvBlocksFraction: 2,
  });
});
