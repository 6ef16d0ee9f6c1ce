import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import pc from "picocolors";
import { describe, expect, onTestFinished, test } from "vitest";
import { requireData } from "../../../../test/support/required-component.ts";
import { runCli } from "../../program.ts";
import type { Terminal } from "../../terminal.ts";

interface Said {
  readonly code: number;
  readonly out: string;
  readonly errors: readonly string[];
}

const SILENT: Terminal = {
  colours: pc.createColors(false),
  debug: false,
  print: () => undefined,
  printError: () => undefined,
  readStdin: () => Promise.resolve(""),
};

/** An experiment that takes no time. */
const ARMS = `
name: arms
fleet: { model: qwen3-8b, gpu: h100, workers: 2, engine: { profile: vllm }, blockTokens: 64, kvPoolTokens: 40000 }
workload:
  conversations: { starters: 2, starterTokens: [600, 700], outputTokensByTurn: [40], tailShare: 0 }
load: { concurrency: [4] }
arms:
  - { name: rr, policy: round-robin }
  - { name: kv, policy: kv-cost }
  - { name: last, policy: least-loaded }
warmUpSeconds: 1
windowSeconds: 5
drainSeconds: 2
`;

async function compare(...words: readonly string[]): Promise<Said> {
  const out: string[] = [];
  const errors: string[] = [];
  const terminal: Terminal = {
    colours: pc.createColors(false),
    debug: false,
    print: (line) => void out.push(line),
    printError: (line) => void errors.push(line),
    readStdin: () => Promise.resolve(""),
  };
  const code = await runCli(["compare", ...words], terminal);
  return { code, out: out.join("\n"), errors };
}

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "warmpath-compare-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

interface Distribution {
  [name: string]: number | string;
}

/** A run of AIPerf as small as it may be: 2,000 requests whose TTFT has the given median. */
function writeRun(folder: string, medianMs: number, failed = 0, isl = 1000): string {
  const spread = (unit: string, p50: number): Distribution => ({
    unit,
    avg: 1.1 * p50,
    ...Object.fromEntries(
      [0.5, 0.6, 0.7, 0.9, 1, 1.1, 1.3, 1.5, 2].map((factor, at) => [
        ["p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99"][at],
        factor * p50,
      ]),
    ),
    min: 0.4 * p50,
    max: 3 * p50,
    count: 2000 - failed,
  });
  mkdirSync(folder, { recursive: true });
  const summary = {
    schema_version: "1.1",
    request_count: { unit: "requests", avg: 2000 - failed },
    ...(failed === 0
      ? {}
      : { error_request_count: { unit: "requests", avg: failed }, error_isl: { unit: "tokens", avg: isl } }),
    time_to_first_token: spread("ms", medianMs),
    inter_token_latency: spread("ms", 20),
    request_latency: spread("ms", 4000),
    input_sequence_length: { unit: "tokens", avg: isl },
    output_sequence_length: { unit: "tokens", avg: 100 },
    input_config: { input: { fixed_schedule: true } },
    error_summary:
      failed === 0
        ? []
        : [
            {
              error_details: { code: 503, type: "Service Unavailable", message: "all workers are busy" },
              count: failed,
            },
          ],
  };
  writeFileSync(join(folder, "profile_export_aiperf.json"), JSON.stringify(summary));
  return folder;
}

/** Three runs that lie two per cent apart. */
function writeArm(folder: string, medianMs: number, failed = 0, isl = 1000): string {
  for (const run of [1, 2, 3]) writeRun(join(folder, `run_${run}`), medianMs * (0.98 + 0.01 * run), failed, isl);
  return folder;
}

describe("the exit code says how it came out", () => {
  test.each([
    ["better is 0", 100, 0, 1000, [], 0, /verdict: better$/m],
    ["worse is 3", 400, 0, 1000, [], 3, /verdict: worse$/m],
    ["no difference shown is 0", 201, 0, 1000, [], 0, /verdict: no difference shown$/m],
    ["and 6 where better was expected", 201, 0, 1000, ["--expect", "better"], 6, /verdict: no difference shown$/m],
    ["fewer completed and quicker is 5", 100, 200, 1000, [], 5, /completeness traded for latency/],
    ["fewer completed and slower is 3", 400, 200, 1000, [], 3, /verdict: worse$/m],
    [
      "other prompts are not comparable, 5",
      100,
      0,
      1500,
      [],
      5,
      /the arms got different prompts: 1,000 and 1,500 tokens/,
    ],
  ] as const)("%s", async (_, medianMs, failed, isl, options, code, verdict) => {
    const root = temporaryFolder();
    const said = await compare(
      writeArm(join(root, "before"), 200),
      writeArm(join(root, "after"), medianMs, failed, isl),
      ...options,
    );
    expect(said.errors).toEqual([]);
    expect(said.out).toMatch(verdict);
    expect(said.code).toBe(code);
    expect(said.out).not.toMatch(/NaN|undefined/);
  });

  test("one run each shows a difference only where ranges do not touch", async () => {
    const root = temporaryFolder();
    const before = writeRun(join(root, "before"), 200);
    expect((await compare(before, writeRun(join(root, "near"), 180))).out).toMatch(/verdict: no difference shown$/m);
    expect((await compare(before, writeRun(join(root, "far"), 40))).out).toMatch(/verdict: better$/m);
  });

  test("JSON has the numbers and the reasons", async () => {
    const root = temporaryFolder();
    const { code, out } = await compare(
      writeArm(join(root, "off"), 200),
      writeArm(join(root, "on"), 100, 200),
      "--json",
    );
    const json = JSON.parse(out) as {
      verdict: string;
      arms: { levels: { accounting: { arm: { shed: number } }; metrics: { metric: string; outcome: string }[] }[] }[];
    };
    expect(code).toBe(5);
    expect(json.verdict).toBe("traded");
    const [level] = json.arms[0].levels;
    expect(level.accounting.arm.shed).toBe(600);
    expect(level.metrics.find(({ metric }) => metric === "completedShare")?.outcome).toBe("worse");
    // 10 % failed, so the 95th percentile over offered requests is beyond everything that completed.
    expect(level.metrics.find(({ metric }) => metric === "ttftP95Ms")?.outcome).toBe("worse");
  });
});

test("what neither folder reached has no change of 0", async () => {
  const root = temporaryFolder();
  const folders = [writeArm(join(root, "off"), 200, 200), writeArm(join(root, "on"), 200, 200)];
  const { out } = await compare(...folders);
  expect(out).toMatch(/^TTFT p95 ms +not reached +not reached +– +noise unknown +no difference shown$/m);
  const json = JSON.parse((await compare(...folders, "--json")).out) as {
    arms: { levels: { metrics: { metric: string; change: number | null; interval: object | null }[] }[] }[];
  };
  const found = json.arms[0].levels[0].metrics.find(({ metric }) => metric === "ttftP95Ms");
  expect(found).toMatchObject({ change: null, interval: null });
});

test("real runs with 503s are not called better", async (context) => {
  const off = dirname(dirname(requireData(context, "aiperf-runs/a100-n2/off/run_1/profile_export_aiperf.json")));
  const { code, out } = await compare(off, join(dirname(off), "on"));
  expect(code).toBe(5);
  expect(out).toMatch(/3000 of 3000 +2571 of 3000/);
  expect(out).toMatch(/16,946 +4,541/);
});

test("a folder that cannot be read, or has nothing to compare, is a usage error of one line", async () => {
  const root = temporaryFolder();
  const one = writeArm(join(root, "one"), 200);
  const broken = join(root, "broken");
  mkdirSync(broken);
  writeFileSync(join(broken, "results.json"), "{");
  const empty = join(root, "empty");
  mkdirSync(empty);
  for (const [before, after, why] of [
    [one, join(root, "nowhere"), /nowhere: cannot be read/],
    [join(root, "nowhere"), one, /nowhere: cannot be read/],
    [one, broken, /broken\/results\.json: is not complete JSON/],
    [empty, empty, /empty: has neither/],
  ] as const) {
    const { code, errors, out } = await compare(before, after);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(errors).toEqual([expect.stringMatching(why)]);
  }
});

describe("what only one folder has", () => {
  /** An arm on fleets of so many workers. */
  function writeLevels(folder: string, medianMs: number, ...levels: readonly number[]): string {
    for (const level of levels) writeArm(join(folder, `N${level}`), medianMs);
    return folder;
  }

  test("a level of the baseline that is missing makes it not comparable, and is named", async () => {
    const root = temporaryFolder();
    const two = writeLevels(join(root, "two"), 200, 2, 4);
    const one = writeLevels(join(root, "one"), 200, 2);
    const { code, out } = await compare(two, one);
    expect(code).toBe(5);
    expect(out).toMatch(/^one: has no results at the trace's own times, 4 workers$/m);
    expect(out).toMatch(
      /^verdict: not comparable\n {2}the baseline has .*: one has no results at the trace's own times, 4 workers$/m,
    );
    const json = JSON.parse((await compare(two, one, "--json")).out) as Record<string, unknown>;
    expect(json).toMatchObject({
      verdict: "not-comparable",
      missing: [{ arm: "one", level: { workers: 4 } }],
      lost: ["one has no results at the trace's own times, 4 workers"],
    });
  });

  test("a level at which the other folder completed nothing makes it not comparable, however the others came out", async () => {
    const root = temporaryFolder();
    const two = writeLevels(join(root, "two"), 200, 2, 4);
    const dead = writeLevels(join(root, "dead"), 200, 2);
    writeArm(join(dead, "N4"), 200, 2000);
    const { code, out } = await compare(two, dead);
    expect(out).toMatch(/^ {2}dead completed none of its [\d,]+ requests$/m);
    expect(out).toMatch(/verdict: not comparable$/);
    expect(code).toBe(5);
  });

  test("a level that the baseline never had is named, and judged by the others", async () => {
    const root = temporaryFolder();
    const one = writeLevels(join(root, "one"), 200, 2);
    const { code, out } = await compare(one, writeLevels(join(root, "two"), 200, 2, 4));
    expect(code).toBe(0);
    expect(out).toMatch(/^one: has no results at the trace's own times, 4 workers\nverdict: no difference shown$/m);
  });

  test("an arm of the baseline that is missing makes it not comparable; one more does not", async () => {
    const root = temporaryFolder();
    const experiment = join(root, "experiment.yaml");
    writeFileSync(experiment, ARMS);
    const run = async (name: string, ...words: readonly string[]): Promise<string> => {
      const out = join(root, name);
      await runCli(["run", experiment, "--out", out, "--threads", "1", ...words], SILENT);
      return out;
    };
    const [all, fewer] = [await run("all"), await run("fewer", "--arms", "rr,kv")];
    const lost = await compare(all, fewer);
    expect(lost.code).toBe(5);
    expect(lost.out).toMatch(/^all\/last: has no counterpart in the other folder$/m);
    expect(lost.out).toMatch(/^verdict: not comparable\n {2}the baseline has .*: all\/last has no counterpart$/m);
    const more = await compare(fewer, all);
    expect(more.code).toBe(0);
    expect(more.out).toMatch(/^all\/last: has no counterpart in the other folder\nverdict: no difference shown$/m);
  });

  test("the first folder is the baseline, whatever the kind of the second", async () => {
    const root = temporaryFolder();
    const experiment = join(root, "experiment.yaml");
    writeFileSync(experiment, ARMS);
    const own = join(root, "own");
    await runCli(["run", experiment, "--out", own, "--threads", "1", "--arms", "rr"], SILENT);
    const foreign = writeLevels(join(root, "foreign"), 200, 4);
    const { out } = await compare(foreign, own, "--json");
    expect(JSON.parse(out)).toMatchObject({ arms: [{ baseline: "foreign" }] });
  });
});
