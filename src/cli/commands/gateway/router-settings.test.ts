import { expect, test } from "vitest";
import { rulesFrom } from "./router-settings.ts";
import { type GivenSettings, readSettings } from "./settings.ts";

const watermarks = (given: GivenSettings): object =>
  rulesFrom({ ...readSettings(given), blockTokens: 16, tokenizer: "word" }).watermarks;

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
