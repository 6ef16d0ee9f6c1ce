import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import type { RequestRecord } from "../../../core/request-record.ts";
import { RecordsWriter } from "../../../lab/results/records-file.ts";
import { RECORDS_FILE } from "../../../lab/results/store.ts";
import { collectInput } from "./collect-input.ts";
import { LOAD_SUMMARY_FILE, readSharedLoad } from "./read-load.ts";

const folders: string[] = [];

afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true });
});

function record(number: number): RequestRecord {
  const atNs = number * 1e9;
  return {
    id: `request-${number}`,
    session: `session-${number}`,
    turn: 0,
    intendedNs: atNs,
    sentNs: atNs,
    placedNs: undefined,
    firstByteNs: atNs + 1e6,
    firstContentNs: atNs + 2e6,
    lastContentNs: atNs + 9e6,
    endNs: atNs + 9e6,
    promptTokens: 100,
    outputTokens: 8,
    predictedCachedTokens: "unavailable",
    observedCachedTokens: "unavailable",
    worker: "a",
    attempts: 1,
    account: "completed",
    shedReason: undefined,
    failure: undefined,
    decision: undefined,
    tokenTimes: undefined,
  };
}

/** A run of `warmpath load` on two pods; each numbers its requests from 0. */
async function sharedLoad(offered: readonly number[], written: readonly number[] = offered): Promise<string[]> {
  const root = await mkdtemp(join(tmpdir(), "warmpath-"));
  folders.push(root);
  const pods = offered.map((_, pod) => join(root, `pod-${pod}`));
  for (const [pod, path] of pods.entries()) {
    await mkdir(path);
    const writer = new RecordsWriter(join(path, RECORDS_FILE));
    await writer.write(
      "load",
      Array.from({ length: written[pod] }, (__, i) => record(i)),
    );
    await writer.close();
    const settings = { url: "http://gateway:8000", concurrency: 30, speed: 1 };
    const summary = { model: "demo", accounting: { offered: offered[pod] }, settings };
    await writeFile(join(path, LOAD_SUMMARY_FILE), JSON.stringify(summary));
  }
  return pods;
}

test("the parts of one load are one run, whose requests and concurrency add up", async () => {
  const { cells, sources, problems } = await collectInput(await sharedLoad([5, 7]), { mode: "pool" });
  expect(problems).toEqual([]);
  expect(cells).toHaveLength(1);
  expect(cells[0].accounting).toMatchObject({ offered: 12, completed: 12 });
  expect(cells[0].level.concurrency).toBe(60);
  expect(sources.map(({ target }) => target)).toEqual(["http://gateway:8000"]);
});

test("requests of two parts are not taken for the same", async () => {
  const parts = (await sharedLoad([3, 3])).map((path, pod) => ({ path, label: `pod-${pod}` }));
  const { records } = await readSharedLoad(parts);
  expect(new Set(records.map(({ id }) => id)).size).toBe(6);
  expect(new Set(records.map(({ session }) => session)).size).toBe(6);
});

test("two loads that are compared are an arm each", async () => {
  const { cells } = await collectInput(await sharedLoad([5, 7]), { mode: "compare" });
  expect(cells.map(({ arm, accounting }) => [arm, accounting.offered])).toEqual([
    ["pod-0", 5],
    ["pod-1", 7],
  ]);
});

test("a part whose records are not complete is named", async () => {
  const { problems } = await collectInput(await sharedLoad([5, 7], [5, 4]), { mode: "pool" });
  expect(problems).toHaveLength(1);
  expect(problems[0]).toMatch(/pod-1: records\.jsonl\.gz has 4 of 7 requests/);
});

test("a summary that breaks off is one line, and the other parts are read", async () => {
  const pods = await sharedLoad([4, 4]);
  await writeFile(join(pods[0], LOAD_SUMMARY_FILE), '{"model":');
  const { cells, problems } = await collectInput(pods, { mode: "pool" });
  expect(problems).toEqual([`${join(pods[0], LOAD_SUMMARY_FILE)}: is no summary of a load`]);
  expect(cells[0].accounting.offered).toBe(4);
});
