import { expect, test } from "vitest";
import { cellsOf } from "../experiment/cells.ts";
import { readExperiment } from "../experiment/read.ts";
import { orderedCells } from "./cell-order.ts";

const CONTENT = {
  name: "order",
  fleet: { model: "llama-3.1-8b", gpu: "h100", workers: 2, engine: { profile: "vllm" }, blockTokens: 64 },
  workload: { conversations: {} },
  load: { concurrency: [10, 20] },
  arms: [
    { name: "a", policy: "round-robin" },
    { name: "b", policy: "kv-cost" },
  ],
  windowSeconds: 10,
  runs: 2,
};

function namesIn(order: "by-arm" | "interleaved"): string[] {
  const { experiment, problems } = readExperiment(CONTENT);
  if (experiment === undefined) throw new Error(problems.join("\n"));
  const cells = cellsOf(experiment);
  return orderedCells(cells, order).map((index) => {
    const { arm, level, run } = cells[index];
    return `${arm.name}${level.concurrency}.${run}`;
  });
}

test("by arm, one arm is finished before the next begins", () => {
  expect(namesIn("by-arm").join(" ")).toBe("a10.1 a10.2 a20.1 a20.2 b10.1 b10.2 b20.1 b20.2");
});

test("interleaved, arms take turns at every level and change who goes first", () => {
  expect(namesIn("interleaved").join(" ")).toBe("a10.1 b10.1 b10.2 a10.2 a20.1 b20.1 b20.2 a20.2");
});
