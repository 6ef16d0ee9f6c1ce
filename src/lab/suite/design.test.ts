import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { describe, expect, test } from "vitest";
import { ENGINE_PROFILES } from "../../sim/engine/profile.ts";
import { spreadCells, suiteCells } from "./design.ts";
import { readSuite } from "./read.ts";
import type { Suite, SuiteCell } from "./types.ts";

const presets = new URL("../../../presets/", import.meta.url);

const read = (name: string): string => readFileSync(new URL(`${name}/suite.yaml`, presets), "utf8");
const text = read("policy-suite");

function preset(name = "policy-suite"): Suite {
  const { suite, problems } = readSuite(parse(read(name), { merge: true }));
  expect(problems).toEqual([]);
  if (suite === undefined) throw new Error("the preset cannot be read");
  return suite;
}

const suite = preset();
const plainOf = (cells: readonly SuiteCell[]): SuiteCell[] => cells.filter((cell) => cell.perturbation === undefined);
const perturbedOf = (cells: readonly SuiteCell[]): SuiteCell[] =>
  cells.filter((cell) => cell.perturbation !== undefined);

function counts(keys: readonly string[]): number[] {
  const found = new Map<string, number>();
  for (const key of keys) found.set(key, (found.get(key) ?? 0) + 1);
  return [...found.values()];
}

describe.each(["full", "quick"] as const)("the %s design of the preset", (which) => {
  const size = suite[which];
  const cells = suiteCells(suite, size);
  const anchored = new Set(suite.workloads.filter((one) => one.anchored).map(({ name }) => name));
  const plain = plainOf(cells).filter(({ workload }) => !anchored.has(workload));
  const workloads = suite.workloads.length - anchored.size;

  test("is the same every time, each cell once", () => {
    expect(suiteCells(preset(), preset()[which])).toEqual(cells);
    expect(new Set(cells.map(({ id }) => id)).size).toBe(cells.length);
  });

  test("has every pair of levels, each about as often as any other", () => {
    const pairs = [
      [counts(plain.map(({ workload, load }) => `${workload} ${load}`)), workloads * size.loads.length],
      [counts(plain.map(({ workload, workers }) => `${workload} ${workers}`)), workloads * size.workers.length],
      [counts(plain.map(({ load, workers }) => `${load} ${workers}`)), size.loads.length * size.workers.length],
    ] as const;
    for (const [found, all] of pairs) {
      expect(found).toHaveLength(all);
      expect(Math.max(...found) - Math.min(...found)).toBeLessThanOrEqual(2);
    }
  });

  test("has the mission's fleets as they are at every load", () => {
    for (const [workload, workers] of [
      ["mission-h200", 3],
      ["mission-h100-tp2", 4],
    ] as const) {
      const loads = plainOf(cells).flatMap((cell) =>
        cell.workload === workload && cell.workers === workers ? cell.load : [],
      );
      expect(loads).toEqual(size.loads);
    }
  });

  test("perturbs cells that it also has unperturbed, every perturbation about equally often", () => {
    const perturbed = perturbedOf(cells);
    const ids = new Set(plainOf(cells).map(({ id }) => id));
    for (const { workload, load, workers } of perturbed) {
      expect(ids).toContain(`${workload}/load-${load}/workers-${workers}`);
    }
    const found = counts(perturbed.map(({ perturbation }) => perturbation?.name ?? ""));
    expect(found).toHaveLength(suite.perturbations.length);
    expect(Math.max(...found) - Math.min(...found)).toBeLessThanOrEqual(1);
  });
});

describe("the designs of the preset", () => {
  test("perturb a tenth of the whole grid, and late events only where a prefix is asked for again meanwhile", () => {
    const perturbed = perturbedOf(suiteCells(suite, suite.full));
    expect(perturbed).toHaveLength(Math.round((12 * 8 * 5) / 10));
    const late = perturbed.filter(({ perturbation }) => perturbation?.name === "events-late");
    for (const { workload } of late) expect(["bursts", "hot-prefix"]).toContain(workload);
  });

  test("leave all other cells as they are when a workload is left out", () => {
    const cells = plainOf(suiteCells(suite, suite.full));
    const without = { ...suite, workloads: suite.workloads.slice(0, -1) };
    expect(plainOf(suiteCells(without, suite.full))).toEqual(
      cells.filter(({ workload }) => workload !== suite.workloads.at(-1)?.name),
    );
  });

  test("spread the cells for tuning over workloads, loads and workers", () => {
    const cells = spreadCells(suite, suite.full, 24);
    expect(new Set(cells.map(({ id }) => id)).size).toBe(24);
    expect(counts(cells.map(({ workload }) => workload))).toEqual(Array.from({ length: 12 }, () => 2));
    expect(counts(cells.map(({ load }) => String(load)))).toHaveLength(8);
    expect(counts(cells.map(({ workers }) => String(workers)))).toHaveLength(5);
  });
});

describe("readSuite", () => {
  test.each([
    [
      "fleet: llama-70b-h200\n    anchored",
      "fleet: none\n    anchored",
      /workloads\[0\]\.fleet is not one of the fleets/,
    ],
    ["workloads: [bursts, hot-prefix]", "workloads: [none]", /has none, which is not one of the workloads/],
    ["  loads: [0.3, 0.7, 1.0, 1.3]", "  loads: [0.4]", /quick\.loads must be some of 0\.15/],
    ["burstSize: 8", "anchored: false", /workloads\[7\]\.burstSize is missing/],
    ["perturbedShare: 0.1", "perturbedshare: 0.1", /perturbedshare is not a known field/],
  ])("refuses %s as %s", (from, to, complaint) => {
    const { problems } = readSuite(parse(text.replace(from, to), { merge: true }));
    expect(problems.join("\n")).toMatch(complaint);
  });
});

describe("suites beside policy-suite", () => {
  const asked = ({ workloads, fleets }: Suite): string[] =>
    workloads.map(({ workload, arrivals, fleet }) => JSON.stringify([workload, arrivals, fleets[fleet]]));
  const heldOut = preset("policy-holdout");

  test.each([
    "policy-holdout",
    "policy-unseen",
    "policy-blind",
    "policy-random",
    "policy-engines",
    "policy-short",
    "policy-alike",
  ])("%s asks of rivals at their best", (name) => {
    expect(existsSync(new URL(`${name}/${preset(name).tunedRivals}`, presets))).toBe(true);
  });

  test("those that are held out ask nothing twice", () => {
    const all = [suite, heldOut, preset("policy-unseen"), preset("policy-blind")].flatMap(asked);
    expect(new Set(all).size).toBe(all.length);
    expect(suiteCells(heldOut, heldOut.full).length).toBeGreaterThan(100);
  });

  test("the one that is drawn is what its seed draws", () => {
    const { seed, workloads } = preset("policy-random");
    const script = fileURLToPath(new URL("../scripts/draw-suite.mjs", presets));
    const drawn = execFileSync(process.execPath, [script, String(seed), String(workloads.length)], {
      encoding: "utf8",
    });
    expect(parse(drawn)).toEqual(parse(read("policy-random")));
    expect(new Set(asked(preset("policy-random"))).size).toBe(workloads.length);
  });

  test("the one for engines asks the same of each", () => {
    const { workloads, fleets } = preset("policy-engines");
    const traffic = new Set(workloads.map(({ workload }) => JSON.stringify(workload)));
    const pairs = workloads.map(({ workload, fleet }) => JSON.stringify([workload, fleets[fleet].engine.profile]));
    expect(traffic.size).toBe(3);
    expect(new Set(workloads.map(({ fleet }) => fleets[fleet].engine.profile))).toEqual(
      new Set(Object.keys(ENGINE_PROFILES)),
    );
    expect(new Set(pairs).size).toBe(traffic.size * Object.keys(ENGINE_PROFILES).length);
  });
});
