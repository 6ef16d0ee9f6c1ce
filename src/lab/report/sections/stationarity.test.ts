import { describe, expect, test } from "vitest";
import { stationarity } from "../../../measure/stationarity.ts";
import { cellOf, groupOf } from "../cells.test-support.ts";
import type { ReportModel } from "../model.ts";
import { stationaritySection } from "./stationarity.ts";

const WINDOW = { startNs: 0, endNs: 1e9, drainNs: 0 };

/** What a section lists of an arm whose runs were judged so. */
function listed(...runs: readonly { readonly saturated: boolean; readonly reasons: readonly string[] }[]): string[] {
  const cells = runs.map(({ saturated, reasons }, at) =>
    cellOf("kv", { run: at + 1, saturated, stationarity: { ...stationarity([], WINDOW), saturated, reasons } }),
  );
  const group = groupOf(...cells);
  const model: Partial<ReportModel> = {
    levels: [group.level],
    arms: [{ name: "kv", policy: undefined, settings: undefined, sources: [0] }],
    groups: [group],
  };
  const { blocks } = stationaritySection(model as ReportModel);
  return blocks.flatMap((block) => (block.kind === "list" ? block.items : []));
}

describe("whether arms kept up", () => {
  const few = { saturated: false, reasons: ["12 requests are too few to judge; 50 are needed"] };
  const fine = { saturated: false, reasons: [] };
  const where = "kv, 8 conversations, 2 workers";

  test("is not taken for granted where it could not be judged", () => {
    expect(listed(fine, fine)).toEqual([]);
    expect(listed(few)).toEqual([`${where}: whether it kept up cannot be told (${few.reasons[0]})`]);
    expect(listed(fine, few)).toEqual([
      `${where}: whether it kept up cannot be told in 1 of 2 runs (${few.reasons[0]})`,
    ]);
  });

  test("is answered by the run that did not", () => {
    const full = { saturated: true, reasons: ["it grew"] };
    expect(listed(few, full)).toEqual([`${where}: overload, every value depends on the length of the run (it grew)`]);
  });
});
