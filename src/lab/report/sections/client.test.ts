import { describe, expect, test } from "vitest";
import { Sample } from "../../../measure/sample.ts";
import type { ClientFigures } from "../../results/types.ts";
import { cellOf, groupOf } from "../cells.test-support.ts";
import type { ReportModel } from "../model.ts";
import { clientSection } from "./client.ts";

/** What a section says below its first table of a run whose requests were all sent so late. */
function said(lagMs: number, requests: number, client?: ClientFigures): readonly string[] {
  const sample = new Sample();
  for (let at = 0; at < requests; at++) sample.add(lagMs);
  const group = groupOf(cellOf("kv", { scheduleLagMs: sample.summaries(1).completed, live: { client } }));
  const { blocks } = clientSection({ levels: [group.level], groups: [group] } as unknown as ReportModel);
  const [, block] = blocks;
  return block.kind === "list" ? block.items : block.kind === "text" ? [block.text] : [];
}

const FIGURES = { scheduleLagP99Ms: 68, loopDelayP99Ms: 24, loopUtilisation: 0.05 };

describe("the client of a run", () => {
  test("kept its schedule unless it was late, at the percentile that is known", () => {
    expect(said(1, 100)).toEqual(["The client kept its schedule in every run."]);
    expect(said(60, 100)[0]).toContain("run 1: the client sent more than 50 ms late at its p95;");
    expect(said(60, 1000)[0]).toContain("run 1: the client sent more than 50 ms late at its p99;");
  });

  test("did not keep it where it found itself to be the bottleneck", () => {
    const slow: ClientFigures = { ...FIGURES, verdict: "bottleneck", reasons: ["requests left 68 ms late"] };
    expect(said(1, 100, slow)).toEqual([
      "kv, 8 conversations, 2 workers, run 1: the client was too slow (requests left 68 ms late); it was the bottleneck, and this run says little of the server",
    ]);
    expect(said(1, 100, { ...FIGURES, verdict: "ok", reasons: [] })).toEqual([
      "The client kept its schedule in every run.",
    ]);
  });
});
