import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { readExperiment } from "../../../lab/experiment/read.ts";
import type { LiveTarget } from "../../../lab/live/target.ts";
import { meanSequenceTokens } from "../../../lab/experiment/workload.ts";
import { readProvenance } from "../../../lab/results/store.ts";
import { type RunOutcome, runExperiment } from "./run-experiment.ts";

const EXPERIMENT = {
  name: "small",
  fleet: {
    model: "qwen3-8b",
    gpu: "h100",
    workers: 2,
    engine: { profile: "vllm" },
    blockTokens: 64,
    kvPoolTokens: 40_000,
  },
  workload: { conversations: { starters: 2, starterTokens: [600, 700], outputTokensByTurn: [40], tailShare: 0 } },
  load: { concurrency: [2, 4, 8] },
  arms: [{ name: "rr", policy: "round-robin" }],
  warmUpSeconds: 1,
  windowSeconds: 5,
  drainSeconds: 5,
};

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "warmpath-resume-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

/** A target that is not there. */
const GONE: LiveTarget = {
  name: "gone",
  order: "by-arm",
  open: () => Promise.reject(new Error("nobody is there")),
  close: () => Promise.resolve(),
};

interface RunChanges {
  readonly name?: string;
  readonly seed?: number;
  readonly fresh?: boolean;
  readonly target?: LiveTarget;
}

async function runInto(out: string, changes: RunChanges = {}): Promise<RunOutcome> {
  const { name = EXPERIMENT.name, seed = 1, fresh = false, target } = changes;
  const { experiment, problems } = readExperiment({ ...EXPERIMENT, name, seed });
  if (experiment === undefined) throw new Error(problems.join("\n"));
  const tokensPerSequence = meanSequenceTokens(experiment.workload, undefined, experiment.seed);
  const setting = { experiment, trace: undefined, tokensPerSequence };
  return runExperiment({ setting, target, out, fresh, threads: 1, command: "test", version: "0", say: () => {} });
}

/** Interrupts the run into a folder as soon as it has finished a cell. */
async function cutShort(out: string): Promise<RunOutcome> {
  const look = (): void => {
    if (existsSync(join(out, ".cells", "00000.json"))) process.emit("SIGINT");
    else setImmediate(look);
  };
  setImmediate(look);
  return runInto(out);
}

/** Every file of a folder with its bytes. */
function contentOf(folder: string): Map<string, string> {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" }).toSorted();
  const files = names.filter((name) => statSync(join(folder, name)).isFile());
  return new Map(files.map((name) => [name, readFileSync(join(folder, name), "base64")]));
}

test("a run on the twin that was cut short and went on has the bytes of one that was not", async () => {
  const folder = temporaryFolder();
  const [whole, cut] = [join(folder, "whole"), join(folder, "cut")];
  await runInto(whole);
  const { cells, interrupted } = await cutShort(cut);
  expect(interrupted).toBe(true);
  expect(cells.length).toBeLessThan(3);
  expect((await readProvenance(cut)).content?.finishedAt).toBeNull();
  expect(await runInto(cut)).toMatchObject({ resumed: cells.length, planned: 3 });
  for (const name of ["results.json", "records.jsonl.gz"]) {
    expect(readFileSync(join(cut, name)).equals(readFileSync(join(whole, name)))).toBe(true);
  }
  expect((await readProvenance(cut)).content?.resumed).toMatchObject([{ finishedCells: cells.length }]);
  expect(existsSync(join(cut, ".cells"))).toBe(false);
});

test("finished cells of another experiment are replaced only when told", async () => {
  const out = temporaryFolder();
  await cutShort(out);
  await expect(runInto(out, { seed: 2 })).rejects.toThrow("of another run that was cut short");
  expect(await runInto(out, { seed: 2, fresh: true })).toMatchObject({ resumed: 0 });
});

test("a run that is complete is run again", async () => {
  const out = temporaryFolder();
  await runInto(out);
  expect(await runInto(out)).toMatchObject({ resumed: 0 });
});

test("a run that finishes nothing leaves the results of an earlier one as they were", async () => {
  const out = temporaryFolder();
  await runInto(out);
  const before = contentOf(out);
  expect([...before.keys()]).toEqual(["provenance.json", "records.jsonl.gz", "results.json"]);
  await expect(runInto(out, { target: GONE })).rejects.toThrow("nobody is there");
  expect(contentOf(out)).toEqual(before);
});

test("a run that finishes nothing leaves no folder where there was none", async () => {
  const out = join(temporaryFolder(), "new");
  await expect(runInto(out, { target: GONE })).rejects.toThrow("nobody is there");
  expect(existsSync(out)).toBe(false);
});

test("cells of a run that was cut short are there to go on with after a fresh one that finishes nothing", async () => {
  const out = temporaryFolder();
  const { cells } = await cutShort(out);
  const before = contentOf(out);
  await expect(runInto(out, { target: GONE, fresh: true })).rejects.toThrow("nobody is there");
  expect(contentOf(out)).toEqual(before);
  expect(await runInto(out)).toMatchObject({ resumed: cells.length });
});

test("cells that a killed process had set aside are put back", async () => {
  const out = temporaryFolder();
  const { cells } = await cutShort(out);
  renameSync(join(out, ".cells"), join(out, ".cells-before"));
  expect(await runInto(out)).toMatchObject({ resumed: cells.length });
  expect(existsSync(join(out, ".cells-before"))).toBe(false);
});

test("a run that has finished a cell has replaced all of the earlier one", async () => {
  const out = temporaryFolder();
  await cutShort(out);
  expect(await runInto(out, { seed: 2, fresh: true })).toMatchObject({ resumed: 0 });
  expect([...contentOf(out).keys()]).toEqual(["provenance.json", "records.jsonl.gz", "results.json"]);
});

test("the results of another experiment are replaced only when told", async () => {
  const out = temporaryFolder();
  await runInto(out);
  const before = contentOf(out);
  await expect(runInto(out, { name: "other" })).rejects.toThrow("has the results of another experiment, small;");
  expect(contentOf(out)).toEqual(before);
  await runInto(out, { name: "other", fresh: true });
  expect(contentOf(out).get("results.json")).not.toEqual(before.get("results.json"));
});

test.each([
  ["results.json", '{"mine":true}'],
  ["results.json", "not JSON"],
  ["records.jsonl.gz", "of a load"],
  ["provenance.json", "{}"],
  [".cells/notes.txt", "mine"],
])("somebody's own %s is never replaced, not even when told", async (name, content) => {
  const out = temporaryFolder();
  mkdirSync(dirname(join(out, name)), { recursive: true });
  writeFileSync(join(out, name), content);
  const before = contentOf(out);
  for (const fresh of [false, true]) {
    await expect(runInto(out, { fresh })).rejects.toThrow(/ that no experiment has written, and would lose it; /);
  }
  expect(contentOf(out)).toEqual(before);
});

test("of AIPerf's files below a results folder only those of its own cells are replaced", async () => {
  const out = temporaryFolder();
  await runInto(out);
  const own = join(out, "aiperf", "rr", "concurrency-2-workers-2", "run-1");
  const foreign = join(out, "aiperf", "mine");
  for (const folder of [own, foreign]) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "profile_export_aiperf.json"), "{}");
  }
  writeFileSync(join(out, "notes.md"), "mine");
  await runInto(out);
  expect(existsSync(join(out, "aiperf", "rr"))).toBe(false);
  expect(existsSync(join(foreign, "profile_export_aiperf.json"))).toBe(true);
  expect(existsSync(join(out, "notes.md"))).toBe(true);
});
